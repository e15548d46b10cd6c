package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/blob"
	"ferry/shared/table"
)

// Blobs keeps small objects beside the items, in their own SQLite table. All
// writes are relaxed: they become durable with a later write of items, which
// follows them in the same log. A loss of power cuts off the end of the log, so it
// never loses only the bytes.
type Blobs struct{ db *DB }

// Blobs returns the small objects in the file.
func (db *DB) Blobs() *Blobs { return &Blobs{db} }

// write runs a statement, and returns the error none if that changes nothing. It waits for the
// outcome even if the context ends, so that the caller knows it and may reuse the bytes.
func (b *Blobs) write(
	ctx context.Context,
	size int,
	s statement,
	none error,
	args ...any,
) error {
	r := newRequest(ctx, size, func(tx *transaction) error {
		n, err := tx.change(s, args...)
		if err == nil && n == 0 {
			err = none
		}
		return err
	})
	if err := b.db.writer.enqueue(r); err != nil {
		return err
	}
	err := <-r.done
	if errors.Is(err, table.ErrFull) {
		return fmt.Errorf("%w: %w", blob.ErrFull, err)
	}
	return err
}

// Create stores an object under a free key. If it is taken, it returns
// blob.ErrExists.
func (b *Blobs) Create(ctx context.Context, area blob.Area, key string, content []byte) error {
	now := time.Now().UnixMilli()
	return b.write(
		ctx,
		len(content),
		b.db.writer.tx.create,
		blob.ErrExists,
		string(area),
		key,
		now,
		content,
	)
}

// Copy copies an object to another key, where it counts as modified now.
// Repeating a copy is no error. It returns blob.ErrNotFound if the source is
// missing.
func (b *Blobs) Copy(
	ctx context.Context,
	from blob.Area,
	fromKey string,
	to blob.Area,
	toKey string,
) error {
	now := time.Now().UnixMilli()
	return b.write(
		ctx,
		0,
		b.db.writer.tx.copy,
		blob.ErrNotFound,
		string(to),
		toKey,
		now,
		string(from),
		fromKey,
	)
}

// Delete removes an object, if it is there.
func (b *Blobs) Delete(ctx context.Context, area blob.Area, key string) error {
	return b.write(ctx, 0, b.db.writer.tx.drop, nil, string(area), key)
}

// Read returns an object's bytes, or blob.ErrNotFound.
func (b *Blobs) Read(
	ctx context.Context,
	area blob.Area,
	key string,
) (content []byte, err error) {
	err = b.db.readers.use(ctx, func(r *reader) error {
		return r.content.each(func(r statement) bool {
			content = r.blob(0)
			return false
		}, string(area), key)
	})
	if err == nil && content == nil {
		err = blob.ErrNotFound
	}
	return content, translate(err)
}

// List does the same as List of blob.Store.
func (b *Blobs) List(
	ctx context.Context,
	area blob.Area,
	after string,
	limit int,
) (objects []blob.Object, err error) {
	err = b.db.readers.use(ctx, func(r *reader) error {
		return r.objects.each(func(r statement) bool {
			objects = append(objects, blob.Object{
				Key:      r.ColumnText(0),
				Size:     r.ColumnInt64(1),
				Modified: time.UnixMilli(r.ColumnInt64(2)),
			})
			return true
		}, string(area), after, int64(limit))
	})
	return objects, translate(err)
}
