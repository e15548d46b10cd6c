package sqlite

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ferry/shared/table"
)

const (
	delay      = 200 * time.Millisecond
	maxDelayed = 4096 // items with a delayed update; updates of further ones are done at once
)

// delayed holds back updates that may wait, and merges those of one item, so that
// counting something frequent costs only a write now and then. It is safe for
// concurrent use.
type delayed struct {
	db *DB

	mu      sync.Mutex
	stopped bool
	ops     map[table.Key]table.Op // nil while none is held back

	flushing sync.Mutex // held while the updates are done
}

// add holds an update back, or does it at once if that is impossible.
func (d *delayed) add(ctx context.Context, op table.Op) error {
	if err := errors.Join(table.CheckOps(op), ctx.Err()); err != nil {
		return err
	}
	earlier, held := d.hold(op)
	if !held {
		_, err := d.db.write(ctx, []table.Op{op}, nil)
		return err
	}
	await(earlier)
	return nil
}

// hold takes an update. If the item's earlier one has another form, that is sent first, under
// the lock, so that no other update or stop can come between.
func (d *delayed) hold(op table.Op) (earlier []*request, held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.ops[op.Key]
	if d.stopped || !ok && len(d.ops) >= maxDelayed {
		return nil, false
	}
	if ok && !merge(old, &op) {
		earlier = d.send(old)
	}
	if d.ops == nil {
		d.ops = map[table.Key]table.Op{}
		time.AfterFunc(delay, d.flush)
	}
	d.ops[op.Key] = op
	return earlier, true
}

// merge adds an earlier update of the same item to op, if both have the same form.
func merge(old table.Op, op *table.Op) bool {
	if !slices.Equal(old.Conds, op.Conds) || len(old.Changes) != len(op.Changes) {
		return false
	}
	changes := slices.Clone(op.Changes)
	for i, was := range old.Changes {
		c := &changes[i]
		if was.Attr != c.Attr || was.Add != c.Add {
			return false
		}
		if c.Add {
			c.Value = was.Value.(int64) + c.Value.(int64)
		}
	}
	op.Changes = changes
	return true
}

// flush does the updates that are held back.
func (d *delayed) flush() {
	d.flushing.Lock()
	defer d.flushing.Unlock()
	d.mu.Lock()
	ops := d.ops
	d.ops = nil
	d.mu.Unlock()
	await(d.send(slices.Collect(maps.Values(ops))...))
}

// send queues updates that were held back.
func (d *delayed) send(ops ...table.Op) (sent []*request) {
	for _, op := range ops {
		r, err := newWrite(context.Background(), []table.Op{op})
		if err == nil && d.db.writer.enqueue(r) == nil {
			sent = append(sent, r)
		}
	}
	return sent
}

// await waits until updates are done. Their errors do not matter.
func await(sent []*request) {
	for _, r := range sent {
		<-r.done
	}
}

// stop does the updates that are held back. Later ones are done at once.
func (d *delayed) stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.flush()
}
