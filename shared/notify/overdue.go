// Package overdue finds the notices that no sender has dealt with: their message
// to the senders was lost, or no sender is there.

package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/table"
)

// Age is for how long a notice must have been due. A sender that works would
// have dealt with it.
const OverdueAge = time.Hour

// MaxEnded is the most notices that one run ends: each is a write of its own,
// and a run has other things to do. The rest is for the next.
const MaxEnded = 5000

// Report counts what a run did.
type RemindReport struct {
	Pointed int // notices that the senders were pointed at again
	Ended   int // notices that it was too late to send
}

// Remind points the senders again at notices that are overdue, and ends those
// that it is too late to send: where no sender is set up, nobody else does. It
// stops at the first error. also is for the operations that belong to a notice
// that has failed.
func Remind(ctx context.Context, t table.Table, topics Topics, now time.Time, also ...Settled) (r RemindReport, err error) {
	var waiting []TopicMessage
	for late, err := range Overdue(ctx, t, now, OverdueAge) {
		if err != nil {
			return r, fmt.Errorf("looking for overdue notices: %w", err)
		}
		if late.Over(now) {
			if err := r.end(ctx, t, now, late, also); err != nil {
				return r, err
			}
			continue
		}
		// What cannot be read is for a sender to give up.
		waiting = append(waiting, Pointer(late.Key, string(late.Notice.Channel)))
		if len(waiting) == MaxBatch {
			if err := r.point(ctx, topics, waiting); err != nil {
				return r, err
			}
			waiting = nil
		}
	}
	return r, r.point(ctx, topics, waiting)
}

func (r *RemindReport) end(ctx context.Context, t table.Table, now time.Time, late Late, also []Settled) error {
	if r.Ended == MaxEnded {
		return nil
	}
	r.Ended++
	return EndLate(ctx, t, now, late, also...)
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
