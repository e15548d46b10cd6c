package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ferry/shared/table"
)

// operation is an operation with its values encoded, so that the writer has
// nothing left to do that could fail on a caller's value.
type operation struct {
	table.Op
	doc     []byte // KindPut
	changes []attribute
	conds   []condition
}

type attribute struct {
	table.Change
	set json.RawMessage // unless Add
}

type condition struct {
	table.Cond
	want json.RawMessage // TestEqual
}

func encode(op table.Op) (operation, error) {
	encoded := operation{Op: op}
	var err error
	if op.Kind == table.KindPut {
		if encoded.doc, err = json.Marshal(op.Value); err != nil {
			return encoded, err
		}
		if encoded.doc[0] != '{' {
			return encoded, fmt.Errorf("a %T does not encode as an object", op.Value)
		}
	}
	for _, c := range op.Changes {
		a := attribute{Change: c}
		if a.set, err = json.Marshal(c.Value); err != nil {
			return encoded, err
		}
		encoded.changes = append(encoded.changes, a)
	}
	for _, c := range op.Conds {
		e := condition{Cond: c}
		if e.want, err = json.Marshal(c.Value); err != nil {
			return encoded, err
		}
		encoded.conds = append(encoded.conds, e)
	}
	return encoded, checkSize(encoded.doc)
}

func checkSize(doc []byte) error {
	if len(doc) > table.MaxItem {
		return fmt.Errorf("an item of %d bytes, the most is %d", len(doc), table.MaxItem)
	}
	return nil
}

// Write implements table.Table.
func (db *DB) Write(ctx context.Context, ops ...table.Op) error {
	if len(ops) == 1 && ops[0].Delayed && ops[0].Kind == table.KindUpdate {
		return db.delayed.add(ctx, ops[0])
	}
	_, err := db.write(ctx, ops, nil)
	return err
}

// WriteThenQuery implements table.Table. The writer reads the page before it
// commits: it has the pages of the file at hand that were just changed, and
// requests of one group that ask for the same page share it.
func (db *DB) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	if err := table.CheckQuery(q); err != nil {
		return table.Page{}, err
	}
	if len(ops) == 0 {
		return db.Query(ctx, q)
	}
	r := &reading{Query: q}
	if _, err := db.write(ctx, ops, r); err != nil {
		return table.Page{}, err // the writer may still be at work
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
	return decode(op.Key, after, into)
}

// write returns the first item as it is afterwards.
func (db *DB) write(ctx context.Context, ops []table.Op, reading *reading) ([]byte, error) {
	if err := table.CheckOps(ops...); err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, ctx.Err()
	}
	r := newRequest(ctx)
	r.relaxed, r.reading = true, reading
	encoded := make([]operation, len(ops))
	for i, op := range ops {
		var err error
		if encoded[i], err = encode(op); err != nil {
			return nil, fmt.Errorf("encoding operation %d on %q: %w", i, op.Key, err)
		}
		r.size += len(encoded[i].doc)
		r.relaxed = r.relaxed && op.Relaxed
	}
	if r.size > table.MaxWrite {
		return nil, fmt.Errorf("a write of %d bytes, the most is %d", r.size, table.MaxWrite)
	}
	var after []byte
	r.do = func(tx *transaction) (err error) {
		after, err = tx.apply(encoded)
		return err
	}
	if err := db.writer.submit(r); err != nil {
		return nil, err
	}
	return after, nil
}

// expiredBatch bounds how long one step of DeleteExpired holds up other writes.
const expiredBatch = 500

// DeleteExpired removes the items whose expiry lies at or before now, and
// returns how many. A server calls it from time to time.
func (db *DB) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	total := 0
	for {
		var n int64
		r := newRequest(ctx)
		r.relaxed = true // what is lost with the power expires again
		r.do = func(tx *transaction) (err error) {
			n, err = tx.deleteExpired(now.Unix(), expiredBatch)
			return err
		}
		if err := db.writer.submit(r); err != nil {
			return total, fmt.Errorf("deleting expired items: %w", err)
		}
		total += int(n)
		if n < expiredBatch {
			return total, nil
		}
	}
}
