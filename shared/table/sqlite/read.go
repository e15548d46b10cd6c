package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"ferry/shared/table"
)

// maxPageBytes ends a page early, so that memory stays bounded.
const maxPageBytes = 1 << 20

// scanPage is the number of items that Scan reads at once.
const scanPage = 256

// Get implements table.Table.
func (db *DB) Get(ctx context.Context, key table.Key, into any) error {
	if err := table.CheckKeys(key); err != nil {
		return err
	}
	doc, err := db.doc(ctx, key)
	if err != nil {
		return err
	}
	if doc == nil {
		return table.ErrNotFound
	}
	return decode(key, doc, into)
}

// doc returns nil if the item is missing. A read waits for nobody and is short,
// so it is not worth a goroutine that watches the context.
func (db *DB) doc(ctx context.Context, key table.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var doc []byte
	err := db.get.QueryRow(key.PK, key.SK).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading item %q: %w", key, translate(err))
	}
	return doc, nil
}

func decode(key table.Key, doc []byte, into any) error {
	if err := json.Unmarshal(doc, into); err != nil {
		return fmt.Errorf("decoding item %q: %w", key, err)
	}
	return nil
}

func item(key table.Key, doc []byte) table.Item {
	if doc == nil {
		return table.NewItem(key, nil, nil)
	}
	return table.NewItem(key, doc, func(into any) error { return decode(key, doc, into) })
}

// GetMany implements table.Table. Two keys, which is what checking a bearer
// takes, are one statement: to lock and unlock the file costs as much as to read.
func (db *DB) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	if err := table.CheckKeys(keys...); err != nil {
		return nil, err
	}
	items := make([]table.Item, 0, len(keys))
	for len(keys)-len(items) >= 2 {
		a, b := keys[len(items)], keys[len(items)+1]
		docs, err := db.pair(ctx, a, b)
		if err != nil {
			return nil, err
		}
		items = append(items, item(a, docs[0]), item(b, docs[1]))
	}
	if len(items) < len(keys) {
		key := keys[len(items)]
		doc, err := db.doc(ctx, key)
		if err != nil {
			return nil, err
		}
		items = append(items, item(key, doc))
	}
	return items, nil
}

// pair reads two items; a missing one is nil.
func (db *DB) pair(ctx context.Context, a, b table.Key) (docs [2][]byte, err error) {
	if err := ctx.Err(); err != nil {
		return docs, err
	}
	if err := db.getTwo.QueryRow(a.PK, a.SK, b.PK, b.SK).Scan(&docs[0], &docs[1]); err != nil {
		return docs, fmt.Errorf("reading items %q and %q: %w", a, b, translate(err))
	}
	return docs, nil
}

// Query implements table.Table.
func (db *DB) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if err := table.CheckQuery(q); err != nil {
		return table.Page{}, err
	}
	return query(ctx, q, db.forward, db.back)
}

const (
	forwardQuery = `SELECT sk, doc FROM items WHERE pk = ? AND sk > ? ORDER BY sk LIMIT ?`
	backQuery    = `SELECT sk, doc FROM items WHERE pk = ? AND sk < ? ORDER BY sk DESC LIMIT ?`
)

// query reads a page by one of two statements.
func query(ctx context.Context, q table.Query, forward, back *sql.Stmt) (table.Page, error) {
	stmt, after := forward, any(q.After)
	if q.Descending {
		stmt = back
		if q.After == "" {
			after = []byte{0} // a blob sorts behind every text
		}
	}
	page, err := readPage(ctx, stmt, q.PK, q.Limit, q.PK, after)
	if err != nil {
		return table.Page{}, fmt.Errorf("querying partition %q: %w", q.PK, translate(err))
	}
	return page, nil
}

// Scan implements table.Table. It reads a page at a time: a long read would
// keep the log of writes from being folded into the file.
func (db *DB) Scan(ctx context.Context, yield func(table.Item) error) error {
	var last table.Key
	for more := true; more; {
		page, err := readPage(ctx, db.scan, "", scanPage, last.PK, last.SK)
		if err != nil {
			return fmt.Errorf("scanning the table: %w", translate(err))
		}
		for _, item := range page.Items {
			if err := yield(item); err != nil {
				return err
			}
			last = item.Key
		}
		more = page.More
	}
	return nil
}

// readPage runs a statement whose last parameter is the number of rows. Its
// rows hold the sort key and the document, behind the partition key unless pk
// says which it is.
func readPage(ctx context.Context, stmt *sql.Stmt, pk string, limit int, args ...any) (page table.Page, err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	rows, err := stmt.Query(append(args, limit+1)...)
	if err != nil {
		return page, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var row struct {
		key table.Key
		doc sql.RawBytes
	}
	columns := []any{&row.key.PK, &row.key.SK, &row.doc}
	if pk != "" {
		row.key.PK, columns = pk, columns[1:]
	}
	page.Items = make([]table.Item, 0, min(limit, 128))
	var docs chunk
	for size := 0; rows.Next(); size += len(row.doc) {
		if len(page.Items) == limit || size > maxPageBytes {
			page.More = true
			return page, nil
		}
		if err := rows.Scan(columns...); err != nil {
			return page, err
		}
		page.Items = append(page.Items, item(row.key, docs.keep(row.doc)))
	}
	return page, rows.Err()
}

// chunk keeps the bytes of several rows in one allocation.
type chunk struct{ free []byte }

func (c *chunk) keep(b []byte) []byte {
	if len(b) > len(c.free) {
		c.free = make([]byte, max(len(b), 16<<10))
	}
	kept := c.free[:len(b):len(b)]
	c.free = c.free[len(b):]
	copy(kept, b)
	return kept
}
