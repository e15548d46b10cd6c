package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"ferry/shared/table"
)

const (
	// failedPartition holds what could not be delivered, for an operator to see.
	failedPartition = "outbox-failed"
	keepFailed      = 30 * 24 * time.Hour
	// lease is how long a claim holds a notice, unless it is settled before.
	// It is longer than a delivery may take with all that goes with it.
	lease = 2 * time.Minute
	// batch is the most notices that one pass takes of each shard: its memory
	// is bounded, and no pass reads much more than it delivers.
	batch = 64
)

// waiting returns notices that are due, the longest due first, and when the
// next one is: at once if there are more. What cannot be read goes to the
// failed ones. It makes one call for each shard, and for each 256 notices there
// that are not due.
func (s *Sender) waiting(ctx context.Context) (due []Notice, next time.Time, err error) {
	now := s.Now()
	for shard := range shards {
		room := batch
		err := s.scan(ctx, partition(shard), func(n Notice) (goOn bool) {
			at := time.UnixMilli(n.NotBefore)
			switch {
			case at.After(now):
				next = earlier(next, at)
			case room == 0:
				next = earlier(next, now)
				return false
			default:
				due, room = append(due, n), room-1
			}
			return true
		})
		if err != nil {
			return nil, time.Time{}, err
		}
	}
	slices.SortFunc(due, func(a, b Notice) int { return cmp.Compare(a.NotBefore, b.NotBefore) })
	return due, next, nil
}

// scan yields the notices of a shard, the oldest first.
func (s *Sender) scan(ctx context.Context, pk string, yield func(Notice) (goOn bool)) error {
	for item, err := range items(ctx, s.Table, table.Query{PK: pk, Limit: 4 * batch}) {
		if err != nil {
			return err
		}
		n, err := read(item)
		if err == nil {
			if !yield(n) {
				return nil
			}
			continue
		}
		if err := s.discard(ctx, item.Key, n, err); err != nil {
			return err
		}
	}
	return nil
}

func read(item table.Item) (Notice, error) {
	n, err := decode(item)
	if err != nil {
		return n, err
	}
	if n.V != layout || n.Key() != item.Key {
		return n, errors.New("it is not of this version's form")
	}
	return n, nil
}

func decode(item table.Item) (n Notice, err error) {
	if err := item.Decode(&n); err != nil {
		return Notice{}, fmt.Errorf("it cannot be read: %w", err)
	}
	return n, nil
}

// discard moves an item that is no notice to the failed ones.
func (s *Sender) discard(ctx context.Context, key table.Key, n Notice, reason error) error {
	n.ID = key.SK
	s.Log.Error("notice given up: it is not of a form that this version reads", "id", n.ID) // the reason may quote it
	return s.fail(ctx, key, n, reason, table.Exists())
}

// claim makes the notice this sender's own until the lease ends. It is false
// if another sender was faster.
func (s *Sender) claim(ctx context.Context, n *Notice) (bool, error) {
	// Each claim counts one try, so the number of tries names the claim. It
	// is compared by AtMost as a missing attribute must not block the outbox.
	op := table.Update(n.Key()).If(table.Exists(), table.AtMost("tries", n.Tries)).
		Set("notBefore", s.Now().Add(lease).UnixMilli()).Set("sending", true).Add("tries", 1)
	err := s.Table.Write(ctx, op.Relax()) // lost with the power it is only sent sooner
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claiming a notice: %w", err)
	}
	n.Tries++
	return true, nil
}

// held is the condition that the claim is still this sender's.
func held(n Notice) table.Cond { return table.Equal("tries", n.Tries) }

// succeed keeps of the notice what the uploader may see of it. Of a PIN, which
// nobody may, nothing stays.
func (s *Sender) succeed(ctx context.Context, n Notice) error {
	n.Outcome, n.SentAt = Sent, s.Now().UnixMilli()
	return s.conclude(ctx, n)
}

// drop ends a notice without a message: for the uploader it has failed, an
// operator has nothing to do about it.
func (s *Sender) drop(ctx context.Context, n Notice, reason error) error {
	n.Outcome, n.FailedAt, n.LastError = Failed, s.Now().UnixMilli(), brief(reason)
	return s.conclude(ctx, n)
}

func (s *Sender) conclude(ctx context.Context, n Notice) error {
	ops := []table.Op{table.Delete(n.Key()).If(held(n))}
	if n.Kind != PIN {
		ops = append(ops, n.keep(s.Now()))
		ops = append(ops, s.Settled.ops(n)...)
	}
	return settled("settling a notice", s.Table.Write(ctx, ops...))
}

func (s *Sender) postpone(ctx context.Context, n Notice, until time.Time, reason error) error {
	op := table.Update(n.Key()).If(held(n)).
		Set("notBefore", until.UnixMilli()).Set("lastError", brief(reason)).Set("sending", false)
	return settled("postponing a notice", s.Table.Write(ctx, op))
}

// fail moves the notice to where an operator sees it.
func (s *Sender) fail(ctx context.Context, key table.Key, n Notice, reason error, cond table.Cond) error {
	now := s.Now()
	n.Outcome, n.FailedAt, n.LastError = Failed, now.UnixMilli(), brief(reason)
	ops := []table.Op{
		table.Delete(key).If(cond),
		table.Put(failedKey(n.ID), n).Expire(now.Add(keepFailed)),
	}
	return settled("giving a notice up", s.Table.Write(ctx, append(ops, s.Settled.ops(n)...)...))
}

// since is when the day begins after which a notice is given up.
func (n Notice) since() time.Time { return time.Unix(max(n.Created, n.Retried), 0) }

// settled wraps the error of a write that ends a claim. A refused condition is
// none: the lease ran out, and the notice is another sender's now.
func settled(what string, err error) error {
	if err == nil || errors.Is(err, table.ErrCondition) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Late is a notice that has been due for long.
type Late struct {
	Key    table.Key
	Notice Notice // zero if the item is none
}

// Overdue yields the notices that have been due for an age, which a sender that
// works would have settled or postponed. It reads the whole outbox.
func Overdue(ctx context.Context, t table.Table, now time.Time, age time.Duration) iter.Seq2[Late, error] {
	return func(yield func(Late, error) bool) {
		for shard := range shards {
			for item, err := range items(ctx, t, table.Query{PK: partition(shard)}) {
				if err != nil {
					yield(Late{}, err)
					return
				}
				n, err := read(item)
				if err != nil {
					n = Notice{}
				}
				if now.Sub(time.UnixMilli(n.NotBefore)) >= age && !yield(Late{item.Key, n}, nil) {
					return
				}
			}
		}
	}
}

// Over reports whether there is no sense in sending an overdue notice any more:
// it has expired, or has waited for 90 days as no sender was there to try it.
func (l Late) Over(now time.Time) bool {
	n := l.Notice
	return n.ID != "" && (n.expired(now) || now.Sub(n.since()) >= keepMost)
}

// expired reports whether the notice's link or PIN would be dead.
func (n Notice) expired(now time.Time) bool { return n.Expires != 0 && now.Unix() >= n.Expires }

// EndLate ends a notice that is Over as one that has failed, as a sender would,
// unless a sender has taken it meanwhile. also is for the operations that belong
// to a notice that has failed.
func EndLate(ctx context.Context, t table.Table, now time.Time, l Late, also ...Settled) error {
	why := fmt.Errorf("%w: it has expired", ErrObsolete)
	if !l.Notice.expired(now) {
		why = fmt.Errorf("%w: it has waited too long", ErrObsolete)
	}
	return settled("ending a late notice", t.Write(ctx, l.Notice.end(now, brief(why), also)...))
}

// items yields what a query finds on all its pages, one call to the table for each.
func items(ctx context.Context, t table.Table, q table.Query) iter.Seq2[table.Item, error] {
	return func(yield func(table.Item, error) bool) {
		q := q
		q.Limit = cmp.Or(q.Limit, table.MaxPage)
		for {
			page, err := t.Query(ctx, q)
			if err != nil {
				yield(table.Item{}, fmt.Errorf("reading the outbox: %w", err))
				return
			}
			for _, item := range page.Items {
				q.After = item.Key.SK
				if !yield(item, nil) {
					return
				}
			}
			if !page.More {
				return
			}
		}
	}
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
