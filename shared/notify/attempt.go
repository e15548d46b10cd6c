package notify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"ferry/shared/fault"
	"ferry/shared/notify/mail"
	"ferry/shared/retry"
	"ferry/shared/table"
)

const (
	// lease is how long a sender holds an entry, unless the try ends earlier. It outlasts a
	// delivery and its writes.
	lease = 2 * time.Minute
	// deliveryTimeout bounds one delivery.
	deliveryTimeout = 30 * time.Second
	// grace is how long a delivery may keep running after its context ends: a message that is cut
	// off may already have arrived, and a retry would send it twice.
	grace = 5 * time.Second
	// markTimeout bounds storing a delivery's outcome.
	markTimeout = 10 * time.Second

	firstRetry = time.Second
	lastRetry  = time.Hour
	// laterRetry is the first pause after a server has refused a mail for now: servers with
	// greylisting penalize senders that come back at once.
	laterRetry = 5 * time.Minute
	giveUp     = day
)

// entry is what the outbox holds: a notice, or an event for a webhook. Its methods return
// operations; their conditions fail if another sender was faster.
type entry interface {
	due() time.Time
	// age is the time since the entry was made. tries counts the leases so far. spent is true
	// if it is time to give up.
	age(now time.Time) (age time.Duration, tries int64, spent bool)
	// hold returns the time until which the entry must wait because of others of its kind, and the
	// operations that store it. There are no operations if the entry may be tried now.
	hold(now time.Time) (until time.Time, ops []table.Op)
	// lease counts a try and moves the entry's due time ahead, so that no other sender takes it until then.
	lease(until time.Time) []table.Op
	deliver(ctx context.Context) error
	postpone(until time.Time, outcome error) []table.Op
	// end takes the entry out of the outbox. outcome is nil if it was sent.
	end(now time.Time, outcome error) []table.Op
	// ended is called once the operations of end are written.
	ended()
	// log returns a logger with the entry's attributes, and the noun for its lines.
	log() (log *slog.Logger, what string)
}

// try leases an entry, delivers it, and stores the result. outcome is the delivery's error, and
// due is when the entry is next tried, zero if never. If the entry has to wait, or another sender
// was faster, outcome is nil and due is nonzero. Any err comes from the table: the entry is then
// due again when the lease ends.
func (s *Sender) try(ctx context.Context, e entry) (due time.Time, outcome, err error) {
	if until, ops := e.hold(s.Now()); ops != nil {
		return until, nil, unlessTaken("holding an entry", s.Table.Write(ctx, ops...))
	}
	due = s.Now().Add(lease)
	err = s.Table.Write(ctx, e.lease(due)...)
	if errors.Is(err, table.ErrCondition) {
		return due, nil, nil
	}
	if err != nil {
		return s.Now(), nil, fmt.Errorf("leasing an entry: %w", err)
	}
	delivering, done := lasting(ctx)
	defer done()
	outcome = e.deliver(delivering)
	marking, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	due, err = s.mark(marking, e, outcome)
	return due, outcome, err
}

// mark stores a delivery's outcome. due is when the entry is next tried, zero if never.
func (s *Sender) mark(ctx context.Context, e entry, outcome error) (due time.Time, err error) {
	now := s.Now()
	log, what := e.log()
	age, tries, spent := e.age(now)
	switch {
	case outcome == nil:
		log.Info(what+" sent", "ageMs", age.Milliseconds())
	case errors.Is(outcome, ErrObsolete):
		log.Info(what+" dropped", "reason", outcome)
	case errors.Is(outcome, ErrPermanent), spent:
		log.Error(what+" given up", "error", outcome)
	default:
		due = now.Add(s.backoff(tries))
		if errors.Is(outcome, mail.ErrLater) {
			due = now.Add(retry.Backoff{
				First:   laterRetry,
				Longest: lastRetry,
			}.Bound(int(tries)))
		}
		if refused, ok := errors.AsType[*refusedError](outcome); ok &&
			refused.wait > due.Sub(now) {
			due = now.Add(min(lastRetry, refused.wait))
		}
		if errors.Is(outcome, mail.ErrQuota) {
			s.quotaFrees.Store(max(s.quotaFrees.Load(), due.UnixMilli()))
		}
		log.Warn(what+" not sent yet",
			"error", outcome,
			"retry", due,
			"ageMs", age.Milliseconds())
		return due, unlessTaken(
			"postponing an entry",
			s.Table.Write(ctx, e.postpone(due, outcome)...),
		)
	}
	err = s.Table.Write(ctx, e.end(now, outcome)...)
	if err == nil {
		e.ended()
	}
	return time.Time{}, unlessTaken("ending an entry", err)
}

// unlessTaken wraps the error of a write. A failed condition is not an error: another sender was
// faster, or took the entry after the lease expired.
func unlessTaken(what string, err error) error {
	return fault.Wrap(err, what, table.ErrCondition)
}

// clampDue converts a stored due time, in Unix milliseconds. A time further ahead than any retry
// was stored by a wrong clock: the entry is due now.
func clampDue(now time.Time, stored int64) time.Time {
	if due := time.UnixMilli(stored); due.Sub(now) <= lastRetry {
		return due
	}
	return time.Time{}
}

// enough reports whether an entry was tried for long enough. If the clock that made the entry ran
// ahead, only the number of tries counts.
func enough(age time.Duration, tries int64) bool {
	return tries >= leastTries && (age >= giveUp || age < -lastRetry)
}

// backoff is how long to wait after a number of tries: a random time between half and all of 1 s,
// 2 s, 4 s and so on, up to 1 h.
func (s *Sender) backoff(tries int64) time.Duration {
	d := retry.Backoff{First: firstRetry, Longest: lastRetry}.Bound(int(tries))
	return d/2 + time.Duration(s.Jitter()*float64(d/2))
}

// lasting returns a context for one delivery that outlives ctx by grace.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	stop := context.AfterFunc(ctx, func() {
		_ = retry.Sleep(out, grace)
		cancel()
	})
	return out, func() { stop(); cancel() }
}

// Handle tries the notice at key once if it is due. wait is how long to wait before the next call,
// 0 if nothing is left to do. Calling it too early, too often or concurrently does no harm. Any
// error comes from the table: the notice then stays in the outbox.
func (s *Sender) Handle(ctx context.Context, key table.Key) (wait time.Duration, err error) {
	items, err := s.Table.GetMany(ctx, key)
	if err != nil || !items[0].Found() {
		return 0, fault.Wrap(err, "reading a notice")
	}
	e, err := s.readNotice(ctx, items[0])
	if e == nil || err != nil {
		return 0, err
	}
	wait = e.due().Sub(s.Now())
	if wait > 0 {
		return wait, nil
	}
	retry, _, err := s.try(ctx, e)
	if err != nil || retry.IsZero() {
		return 0, err
	}
	return max(time.Millisecond, retry.Sub(s.Now())), nil // it may already be due
}

// scan yields the decoded items of the partitions, with one call to the table for each page. It
// stops at an error from the table.
func scan[T any](
	ctx context.Context, t table.Table, q table.Query, decode func(table.Item) (T, error), partitions ...string,
) iter.Seq2[T, error] {
	q.Limit = table.MaxPage
	return func(yield func(T, error) bool) {
		for _, q.PK = range partitions {
			for item, err := range table.Each(ctx, t, q) {
				if err != nil {
					var none T
					yield(none, err)
					return
				}
				if !yield(decode(item)) {
					return
				}
			}
		}
	}
}

// earlier returns the earlier nonzero time.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
