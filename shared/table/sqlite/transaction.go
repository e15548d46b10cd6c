package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"ferry/shared/table"
)

// transaction is what the writer does between begin and commit.
type transaction struct {
	conn                      *connection
	begin, commit, undo       statement
	read, put, remove, expire statement
	forward, back             statement
	create, copy, drop        statement // of small objects

	// updated holds updated items until the commit, since many requests of a
	// group may count in the same item.
	updated map[table.Key]stored
}

// statementError marks an error after which the transaction must be undone.
type statementError struct{ error }

func (e *statementError) Unwrap() error { return e.error }

func newTransaction(conn *connection) (*transaction, error) {
	tx := &transaction{conn: conn, updated: map[table.Key]stored{}}
	return tx, conn.prepare(map[string]*statement{
		// IMMEDIATE, because a transaction that began as a reader could not
		// write if another process has written since.
		`BEGIN IMMEDIATE`: &tx.begin,
		`COMMIT`:          &tx.commit,
		`ROLLBACK`:        &tx.undo,

		`SELECT doc, ttl FROM items WHERE pk = ? AND sk = ?`: &tx.read,
		`INSERT INTO items (pk, sk, doc, ttl) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET doc = excluded.doc, ttl = excluded.ttl`: &tx.put,
		`DELETE FROM items WHERE pk = ? AND sk = ?`: &tx.remove,
		`DELETE FROM items WHERE (pk, sk) IN
			(SELECT pk, sk FROM items WHERE ttl IS NOT NULL AND ttl <= ? LIMIT ?)`: &tx.expire,
		forwardQuery: &tx.forward,
		backQuery:    &tx.back,

		`INSERT INTO blobs (area, key, modified, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`: &tx.create,
		`INSERT INTO blobs (area, key, modified, content)
			SELECT ?, ?, ?, content FROM blobs WHERE area = ? AND key = ?
			ON CONFLICT DO UPDATE SET modified = excluded.modified`: &tx.copy,
		`DELETE FROM blobs WHERE area = ? AND key = ?`: &tx.drop,
	})
}

// flush writes the updated items. After an error nothing more may be written:
// SQLite may have undone the transaction, and later statements would take effect
// at once.
func (tx *transaction) flush() error {
	for key, item := range tx.updated {
		if err := tx.write(key, item); err != nil {
			return err
		}
	}
	clear(tx.updated)
	return nil
}

// change runs a statement and returns how many rows it has changed.
func (tx *transaction) change(s statement, args ...any) (int64, error) {
	if err := s.exec(args...); err != nil {
		return 0, &statementError{err}
	}
	return int64(tx.conn.Changes()), nil
}

func (tx *transaction) write(key table.Key, item stored) error {
	_, err := tx.change(tx.put, key.PK, key.SK, item.doc, item.ttl)
	return err
}

// rollback ignores its error: SQLite may have rolled back by itself, as it does
// when the disk is full, and the error that led here is reported anyway.
func (tx *transaction) rollback() {
	clear(tx.updated)
	_ = tx.undo.exec()
}

// stored is an item as it is in the table; doc is nil if it is missing.
type stored struct {
	doc   []byte
	ttl   any      // Unix seconds, or nil
	attrs document // those of doc, or nil if it was not decoded yet
}

// apply checks all conditions and computes all new items before it writes the
// first. It returns the first item as it is afterwards. Unless its error is a
// *statementError, nothing has changed.
func (tx *transaction) apply(ops []table.Op) ([]byte, error) {
	after := make([]stored, len(ops))
	for i, op := range ops {
		before, err := tx.before(op)
		if err != nil {
			return nil, err
		}
		ok, err := holds(op.Conds, &before)
		if err != nil {
			return nil, fmt.Errorf("decoding item %q: %w", op.Key, err)
		}
		if !ok {
			return nil, &table.ConditionError{Op: i}
		}
		if after[i], err = next(op, before); err != nil {
			return nil, fmt.Errorf("operation %d on %q: %w", i, op.Key, err)
		}
	}
	for i, op := range ops {
		if err := tx.store(op, after[i]); err != nil {
			return nil, fmt.Errorf("operation %d on %q: %w", i, op.Key, err)
		}
	}
	return after[0].doc, nil
}

// before reads the item, if the operation depends on it.
func (tx *transaction) before(op table.Op) (stored, error) {
	var s stored
	if len(op.Conds) == 0 && op.Kind != table.KindUpdate {
		return s, nil
	}
	if item, ok := tx.updated[op.Key]; ok {
		return item, nil
	}
	err := tx.read.each(func(r statement) bool {
		s.doc = r.blob(0)
		if r.ColumnType(1) == sqlite.TypeInteger {
			s.ttl = r.ColumnInt64(1)
		}
		return false
	}, op.Key.PK, op.Key.SK)
	if err != nil {
		return s, &statementError{fmt.Errorf("reading item %q: %w", op.Key, err)}
	}
	return s, nil
}

// next returns the item that an operation leaves behind.
func next(op table.Op, before stored) (after stored, err error) {
	switch op.Kind {
	case table.KindPut:
		after.doc = doc(op)
	case table.KindUpdate:
		if after, err = before.change(op.Changes); err != nil {
			return after, err
		}
	}
	if !op.Expires.IsZero() {
		after.ttl = op.Expires.Unix()
	}
	return after, checkSize(after.doc)
}

func (tx *transaction) store(op table.Op, after stored) error {
	switch op.Kind {
	case table.KindUpdate:
		tx.updated[op.Key] = after
	case table.KindPut:
		delete(tx.updated, op.Key)
		return tx.write(op.Key, after)
	case table.KindDelete:
		delete(tx.updated, op.Key)
		_, err := tx.change(tx.remove, op.Key.PK, op.Key.SK)
		return err
	}
	return nil
}

// readPages reads the pages for the requests that were not refused, each page
// only once.
func (tx *transaction) readPages(batch []*request, answers []error) {
	once := map[table.Query]*reading{}
	for i, r := range batch {
		if r.reading == nil || answers[i] != nil {
			continue
		}
		if same, ok := once[r.reading.Query]; ok {
			*r.reading = *same
			continue
		}
		once[r.reading.Query] = r.reading
		r.reading.page, r.reading.err = query(r.reading.Query, tx.forward, tx.back)
	}
}
