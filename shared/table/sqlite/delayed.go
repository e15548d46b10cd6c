package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ferry/shared/table"
)

const (
	delay      = 200 * time.Millisecond
	maxDelayed = 4096 // items with a delayed update; further ones are done at once
)

// delayed holds back updates that may wait and merges those of one item, so
// that a count of what happens often costs a write now and then. It is safe
// for concurrent use.
type delayed struct {
	write func(context.Context, table.Op) error

	mu    sync.Mutex
	ops   map[table.Key]table.Op
	timer *time.Timer // runs while ops has something
	ended bool
	wg    sync.WaitGroup // flushes under way
}

func newDelayed(write func(context.Context, table.Op) error) *delayed {
	return &delayed{write: write, ops: map[table.Key]table.Op{}}
}

// add takes an update, or does it where it cannot be held back.
func (d *delayed) add(ctx context.Context, op table.Op) error {
	if err := errors.Join(table.CheckOps(op), ctx.Err()); err != nil {
		return err
	}
	d.mu.Lock()
	old, ok := d.ops[op.Key]
	if merged, fits := merge(old, op, ok); fits && !d.ended && (ok || len(d.ops) < maxDelayed) {
		defer d.mu.Unlock()
		if d.ops[op.Key] = merged; d.timer == nil {
			d.wg.Add(1)
			d.timer = time.AfterFunc(delay, d.flush)
		}
		return nil
	}
	d.mu.Unlock()
	return d.write(ctx, op)
}

// merge joins two updates of an item if they have the same form.
func merge(old, op table.Op, ok bool) (table.Op, bool) {
	if !ok {
		return op, true
	}
	if !slices.Equal(old.Conds, op.Conds) || len(old.Changes) != len(op.Changes) {
		return op, false
	}
	changes := slices.Clone(op.Changes)
	for i, c := range changes {
		was := old.Changes[i]
		if was.Attr != c.Attr || was.Add != c.Add {
			return op, false
		}
		if c.Add {
			changes[i].Value = was.Value.(int64) + c.Value.(int64)
		}
	}
	op.Changes = changes
	return op, true
}

// flush does what was held back. Its errors concern nobody any more.
func (d *delayed) flush() {
	defer d.wg.Done()
	d.mu.Lock()
	ops := d.ops
	d.ops, d.timer = map[table.Key]table.Op{}, nil
	d.mu.Unlock()
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxBatch) // so many share a commit
	for _, op := range ops {
		slots <- struct{}{}
		wg.Go(func() {
			_ = d.write(context.Background(), op)
			<-slots
		})
	}
	wg.Wait()
}

// stop does what is held back; what comes later is done at once.
func (d *delayed) stop() {
	d.mu.Lock()
	d.ended = true
	due := d.timer != nil && d.timer.Stop()
	d.mu.Unlock()
	if due {
		d.flush()
	}
	d.wg.Wait()
}
