package notices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// batch is the most notices that one pass delivers: new ones get their
	// turn in between, however many wait for a server that does not answer.
	batch = 64
)

// waiting returns the notices that are due, the longest due first, and when
// the next one is. What cannot be read goes to the failed ones. It reads the
// whole outbox: one call for each shard, and for each 1000 notices in it.
func (s *Sender) waiting(ctx context.Context) (due []Notice, next time.Time, err error) {
	now := s.Now()
	for shard := range shards {
		err := s.scan(ctx, partition(shard), func(n Notice) {
			at := time.UnixMilli(n.NotBefore)
			if !at.After(now) {
				due = append(due, n)
			} else {
				next = earlier(next, at)
			}
		})
		if err != nil {
			return nil, time.Time{}, err
		}
	}
	slices.SortFunc(due, func(a, b Notice) int { return cmp.Compare(a.NotBefore, b.NotBefore) })
	if len(due) > batch {
		return due[:batch], now, nil
	}
	return due, next, nil
}

func (s *Sender) scan(ctx context.Context, pk string, yield func(Notice)) error {
	q := table.Query{PK: pk, Limit: table.MaxPage}
	for {
		page, err := s.Table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("reading the outbox: %w", err)
		}
		for _, item := range page.Items {
			q.After = item.Key.SK
			n, err := read(item)
			if err == nil {
				yield(n)
				continue
			}
			if err := s.discard(ctx, item.Key, n, err); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

func read(item table.Item) (Notice, error) {
	var n Notice
	if err := item.Decode(&n); err != nil {
		return Notice{}, fmt.Errorf("it cannot be read: %w", err)
	}
	if n.V != layout || n.Key() != item.Key {
		return n, errors.New("it is not of this version's form")
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
		Set("notBefore", s.Now().Add(lease).UnixMilli()).Add("tries", 1)
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

func (s *Sender) remove(ctx context.Context, n Notice) error {
	return settled("removing a notice", s.Table.Write(ctx, table.Delete(n.Key()).If(held(n))))
}

func (s *Sender) postpone(ctx context.Context, n Notice, until time.Time, reason error) error {
	op := table.Update(n.Key()).If(held(n)).
		Set("notBefore", until.UnixMilli()).Set("lastError", brief(reason))
	return settled("postponing a notice", s.Table.Write(ctx, op))
}

// fail moves the notice to where an operator sees it.
func (s *Sender) fail(ctx context.Context, key table.Key, n Notice, reason error, cond table.Cond) error {
	n.LastError = brief(reason)
	failed := table.Key{PK: failedPartition, SK: n.ID}
	return settled("giving a notice up", s.Table.Write(ctx,
		table.Delete(key).If(cond),
		table.Put(failed, n).Expire(s.Now().Add(keepFailed)),
	))
}

// settled wraps the error of a write that ends a claim. A refused condition is
// none: the lease ran out, and the notice is another sender's now.
func settled(what string, err error) error {
	if err == nil || errors.Is(err, table.ErrCondition) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Failed returns up to limit (1 to table.MaxPage) notices that were given up
// in the last 30 days, newest first. LastError says why.
func Failed(ctx context.Context, t table.Table, limit int) ([]Notice, error) {
	page, err := t.Query(ctx, table.Query{PK: failedPartition, Descending: true, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("reading the failed notices: %w", err)
	}
	failed := make([]Notice, len(page.Items))
	for i, item := range page.Items {
		if err := item.Decode(&failed[i]); err != nil {
			return nil, fmt.Errorf("reading a failed notice: %w", err)
		}
	}
	return failed, nil
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
