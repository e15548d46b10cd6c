package notify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// State is how far a notice has got.
type State string

// The states.
const (
	Queued  State = "queued"  // waits for its first or next try
	Sending State = "sending" // a sender has it
	Sent    State = "sent"    // a provider has accepted it
	Failed  State = "failed"  // it did not arrive, and is not tried again
)

// State returns how far the notice has got.
func (n Notice) State() State {
	switch {
	case n.Outcome != "":
		return n.Outcome
	case n.Sending:
		return Sending
	}
	return Queued
}

// OnEnd returns more operations for the transaction that ends a notice of kind
// Link as Sent or Failed. It may be called twice for one notice: feedback can turn
// Sent into Failed.
type OnEnd func(n Notice, s State) []table.Op

// onEnd returns the operations of all OnEnd when the notice ends.
func (n Notice) onEnd(all []OnEnd) (ops []table.Op) {
	for _, f := range all {
		if n.Kind == Link && n.V == table.Format {
			ops = append(ops, f(n, n.Outcome)...)
		}
	}
	return ops
}

const (
	// A notice that has ended is kept as long as its file, within bounds.
	keepLeast = 3 * day
	keepMost  = 90 * day
)

// keep returns the operation that stores a notice that has ended.
func (n Notice) keep(now time.Time) table.Op {
	until := now.Add(keepMost).Unix()
	if n.Expires != 0 {
		until = min(until, max(n.Expires, now.Add(keepLeast).Unix()))
	}
	return table.Put(endedKey(n.ID), n).Expire(time.Unix(until, 0))
}

func endedKey(id string) table.Key { return table.Key{PK: "notice#" + id, SK: "notice"} }

func failedKey(id string) table.Key { return table.Key{PK: failedPartition, SK: id} }

// idsPerCall is how many notices' states one call to the table reads.
const idsPerCall = table.MaxKeys / 3

// States returns the notices with these IDs as they are now, in this order. Any that is no
// longer known or cannot be read is left out. It makes one call to the table for each 33, and
// one more if some of these are not found.
func States(ctx context.Context, t table.Table, ids []string) ([]Notice, error) {
	var all []Notice
	for some := range slices.Chunk(ids, idsPerCall) {
		items, err := lookUp(ctx, t, some...)
		if err != nil {
			return nil, err
		}
		for three := range slices.Chunk(items, 3) {
			if n, err := latest(three); err == nil && n.ID != "" {
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// lookUp returns three items for each ID: the notice as waiting, as given up, and as ended
// otherwise. They are not read at the same moment, so a notice that moves meanwhile may be
// missing from all three; then they are read again.
func lookUp(ctx context.Context, t table.Table, ids ...string) ([]table.Item, error) {
	all := make([]table.Item, 3*len(ids))
	missing := func(i int) bool {
		return !slices.ContainsFunc(all[3*i:3*i+3], table.Item.Found)
	}
	for range 2 {
		var keys []table.Key
		for i, id := range ids {
			if missing(i) {
				keys = append(keys, Notice{ID: id}.Key(), failedKey(id), endedKey(id))
			}
		}
		if len(keys) == 0 {
			break
		}
		items, err := t.GetMany(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("reading the states of notices: %w", err)
		}
		for i := range ids {
			if missing(i) {
				items = items[copy(all[3*i:3*i+3], items):]
			}
		}
	}
	return all, nil
}

// latest returns the notice in the last item that was found.
func latest(items []table.Item) (n Notice, err error) {
	for _, item := range slices.Backward(items) {
		if item.Found() {
			err = item.Decode(&n)
			n.ID = cmp.Or(n.ID, item.Key.SK)
			return n, fault.Wrap(err, "reading the state of a notice")
		}
	}
	return n, nil
}
