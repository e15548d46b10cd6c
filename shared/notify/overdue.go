package notify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"ferry/shared/table"
)

// OverdueAge is how long a notice must have been due. A working sender would
// have dealt with it.
const OverdueAge = time.Hour

// MaxEnded is the most notices that one run ends: each needs a write, and a run
// has other things to do. The next run does the rest.
const MaxEnded = 5000

// RemindReport counts what a run did.
type RemindReport struct {
	Pointed int // notices that the senders got another message about
	Ended   int // notices that were too late to send
}

// Late is a notice that has been due for long.
type Late struct {
	Key    table.Key
	Notice Notice // zero if the item cannot be read
}

// Remind sends the senders another message about each overdue notice: the first
// was lost, or no sender was running. It ends notices that are too late to send:
// without a sender, nothing else would. It stops at the first error. also adds
// what is written when a notice fails.
func Remind(ctx context.Context, t table.Table, topics Topics, now time.Time, also ...Settled) (r RemindReport, err error) {
	var waiting []TopicMessage
	for late, err := range Overdue(ctx, t, now, OverdueAge) {
		switch why := late.over(now); {
		case err != nil:
			return r, fmt.Errorf("looking for overdue notices: %w", err)
		case why == nil: // what cannot be read is for a sender to give up
			waiting = append(waiting, Pointer(late.Key, string(late.Notice.Channel)))
		case r.Ended < MaxEnded:
			r.Ended++
			n := late.Notice
			ops := n.failed(now, brief(why)).end(now, also, n.untouched()...)
			if err := unlessTaken("ending a late notice", t.Write(ctx, ops...)); err != nil {
				return r, err
			}
		}
		if len(waiting) == MaxBatch {
			if err := r.point(ctx, topics, waiting); err != nil {
				return r, err
			}
			waiting = nil
		}
	}
	return r, r.point(ctx, topics, waiting)
}

func (r *RemindReport) point(ctx context.Context, topics Topics, messages []TopicMessage) error {
	if len(messages) == 0 {
		return nil
	}
	if err := errors.Join(topics.Publish(ctx, NoticesTopic, messages)...); err != nil {
		return fmt.Errorf("pointing at overdue notices: %w", err)
	}
	r.Pointed += len(messages)
	return nil
}

// Overdue yields the notices that have been due for an age. It reads the whole
// outbox.
func Overdue(ctx context.Context, t table.Table, now time.Time, age time.Duration) iter.Seq2[Late, error] {
	return func(yield func(Late, error) bool) {
		for item, err := range scan(ctx, t, table.Query{}, partitions(OutboxPrefix)...) {
			n, unread := read(item)
			if unread != nil {
				n = Notice{}
			}
			if now.Sub(time.UnixMilli(n.NotBefore)) >= age && !yield(Late{item.Key, n}, err) {
				return
			}
		}
	}
}

// over returns why the notice is too late to send: it has expired, or has waited
// for 90 days without a sender.
func (l Late) over(now time.Time) error {
	n := l.Notice
	switch {
	case n.ID == "":
		return nil
	case n.expired(now):
		return fmt.Errorf("%w: it has expired", ErrObsolete)
	case now.Sub(n.since()) >= keepMost:
		return fmt.Errorf("%w: it has waited too long", ErrObsolete)
	}
	return nil
}
