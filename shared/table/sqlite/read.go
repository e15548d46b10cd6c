package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ferry/shared/table"
)

// maxPageBytes ends a page early, so that memory stays bounded.
const maxPageBytes = 1 << 20

// scanPage is the number of items that Scan reads at a time.
const scanPage = 256

// Get implements table.Table.
func (db *DB) Get(ctx context.Context, key table.Key, into any) error {
	items, err := db.GetMany(ctx, key)
	if err != nil {
		return err
	}
	return items[0].Decode(into)
}

// GetMany implements table.Table.
func (db *DB) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	if err := table.CheckKeys(keys...); err != nil {
		return nil, err
	}
	items := make([]table.Item, 0, len(keys))
	err := db.readers.use(ctx, func(r *reader) error {
		for pair := range slices.Chunk(keys, 2) {
			docs, err := r.docs(pair)
			if err != nil {
				return fmt.Errorf("reading items %q: %w", pair, translate(err))
			}
			for i, key := range pair {
				items = append(items, item(key, docs[i]))
			}
		}
		return nil
	})
	return items, err
}

// docs reads one or two items; a missing one is NULL. Two, as needed to check a
// bearer, take one statement: locking and unlocking the file costs as much as
// reading.
func (r *reader) docs(keys []table.Key) (docs [][]byte, err error) {
	s, args := r.get, []any{keys[0].PK, keys[0].SK}
	if len(keys) == 2 {
		s, args = r.getTwo, append(args, keys[1].PK, keys[1].SK)
	}
	err = s.each(func(r statement) bool {
		for i := range keys {
			docs = append(docs, r.blob(i))
		}
		return false
	}, args...)
	return docs, err
}

func decode(i table.Item, into any) error {
	if err := json.Unmarshal(i.Raw, into); err != nil {
		return fmt.Errorf("decoding item %q: %w", i.Key, err)
	}
	return nil
}

func item(key table.Key, doc []byte) table.Item {
	if doc == nil {
		return table.NewItem(key, nil, nil)
	}
	return table.NewItem(key, doc, decode)
}

// Query implements table.Table.
func (db *DB) Query(ctx context.Context, q table.Query) (page table.Page, err error) {
	if err := table.CheckQuery(q); err != nil {
		return table.Page{}, err
	}
	err = db.readers.use(ctx, func(r *reader) error {
		page, err = query(q, r.forward, r.back)
		return err
	})
	if err != nil {
		return table.Page{}, fmt.Errorf("querying partition %q: %w", q.PK, translate(err))
	}
	return page, nil
}

// query reads a page by one of two statements.
func query(q table.Query, forward, back statement) (table.Page, error) {
	s, after := forward, any(q.After)
	if q.Descending {
		s = back
		if q.After == "" {
			after = []byte{0} // a blob sorts after every text
		}
	}
	return readPage(s, q.PK, q.Limit, q.PK, after)
}

// Scan implements table.Table. It reads a page at a time: a long read would hold up checkpoints
// of the log.
func (db *DB) Scan(ctx context.Context, yield func(table.Item) error) error {
	var last table.Key
	for more := true; more; {
		var page table.Page
		err := db.readers.use(ctx, func(r *reader) (err error) {
			page, err = readPage(r.scan, "", scanPage, last.PK, last.SK)
			return err
		})
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

// readPage runs a statement whose last parameter is the number of rows. A row has
// the sort key, the document and, if pk is empty, the partition key.
func readPage(s statement, pk string, limit int, args ...any) (table.Page, error) {
	page := table.Page{Items: make([]table.Item, 0, min(limit, 128))}
	size := 0
	err := s.each(func(r statement) bool {
		if len(page.Items) == limit || size > maxPageBytes {
			page.More = true
			return false
		}
		key := table.Key{PK: pk, SK: r.ColumnText(0)}
		if pk == "" {
			key.PK = r.ColumnText(2)
		}
		doc := r.blob(1)
		size += len(doc)
		page.Items = append(page.Items, item(key, doc))
		return true
	}, append(args, int64(limit+1))...)
	return page, err
}
