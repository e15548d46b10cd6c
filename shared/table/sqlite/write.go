package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ferry/shared/table"
)

// encode returns an operation with its values as JSON, except the numbers of Add
// and TestAtMost. After that, no caller's value can make the writer fail.
func encode(op table.Op) (table.Op, error) {
	var err error
	into := func(value *any) {
		text, failed := json.Marshal(*value)
		*value, err = json.RawMessage(text), cmp.Or(err, failed)
	}
	if op.Kind == table.KindPut {
		name := fmt.Sprintf("a %T", op.Value)
		into(&op.Value)
		if err == nil && doc(op)[0] != '{' {
			err = fmt.Errorf("%s does not encode as an object", name)
		}
	}
	op.Changes, op.Conds = slices.Clone(op.Changes), slices.Clone(op.Conds)
	for i := range op.Changes {
		if c := &op.Changes[i]; !c.Add {
			into(&c.Value)
		}
	}
	for i := range op.Conds {
		if c := &op.Conds[i]; c.Test == table.TestEqual {
			into(&c.Value)
		}
	}
	if err == nil {
		err = checkSize(doc(op))
	}
	return op, err
}

// doc returns the item that a Put stores, and nil for other operations.
func doc(op table.Op) []byte {
	text, _ := op.Value.(json.RawMessage)
	return text
}

func checkSize(doc []byte) error {
	if len(doc) > table.MaxItem {
		return fmt.Errorf("an item of %d bytes, the most is %d", len(doc), table.MaxItem)
	}
	return nil
}

// Write implements table.Table.
func (db *DB) Write(ctx context.Context, ops ...table.Op) error {
	_, err := db.write(ctx, ops, nil)
	return err
}

// WriteThenQuery implements table.Table. The writer reads the page before it commits: it still
// has the changed parts of the file in its cache, and requests of one group share a page.
func (db *DB) WriteThenQuery(
	ctx context.Context,
	q table.Query,
	ops ...table.Op,
) (table.Page, error) {
	if err := table.CheckQuery(q); err != nil {
		return table.Page{}, err
	}
	if len(ops) == 0 {
		return db.Query(ctx, q)
	}
	r := &reading{Query: q}
	if _, err := db.write(ctx, ops, r); err != nil {
		return table.Page{}, err // without r.page, which the writer may still be setting
	}
	return r.page, nil
}

// Update implements table.Table.
func (db *DB) Update(ctx context.Context, op table.Op, into any) error {
	if err := table.CheckUpdate(op); err != nil {
		return err
	}
	after, err := db.write(ctx, []table.Op{op}, nil)
	if err != nil {
		return err
	}
	return item(op.Key, after).Decode(into)
}

// write does the operations, and reads a page if reading is not nil. It returns
// the first item as it is afterwards.
func (db *DB) write(ctx context.Context, ops []table.Op, reading *reading) ([]byte, error) {
	if err := table.CheckOps(ops...); err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, ctx.Err()
	}
	r, err := newWrite(ctx, ops)
	if err != nil {
		return nil, err
	}
	r.reading = reading
	if err := db.writer.submit(r); err != nil {
		return nil, err
	}
	return r.after, nil
}

func newWrite(ctx context.Context, ops []table.Op) (*request, error) {
	encoded := make([]table.Op, len(ops))
	r := newRequest(ctx, 0, nil)
	r.do = func(tx *transaction) (err error) {
		r.after, err = tx.apply(encoded)
		return err
	}
	for i, op := range ops {
		var err error
		if encoded[i], err = encode(op); err != nil {
			return nil, fmt.Errorf("encoding operation %d on %q: %w", i, op.Key, err)
		}
		r.size += len(doc(encoded[i]))
		r.relaxed = r.relaxed && op.Relaxed
	}
	if r.size > table.MaxWrite {
		return nil, fmt.Errorf("a write of %d bytes, the most is %d", r.size, table.MaxWrite)
	}
	return r, nil
}

// expiredBatch bounds how long one step of DeleteExpired delays other writes.
const expiredBatch = 500

// DeleteExpired implements table.Table.
func (db *DB) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	total := 0
	for {
		var n int64
		r := newRequest(ctx, 0, func(tx *transaction) (err error) { // after a loss of power the items expire again
			if err = tx.flush(); err == nil {
				n, err = tx.change(tx.expire, now.Unix(), int64(expiredBatch))
			}
			return err
		})
		if err := db.writer.submit(r); err != nil {
			return total, fmt.Errorf("deleting expired items: %w", err)
		}
		total += int(n)
		if n < expiredBatch {
			return total, nil
		}
	}
}
