package apitest

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/table"
)

// Calls counts the calls to the stores ("table.Get", "blob.Create", "parts.List"
// and so on) and lets tests interfere with them. It is safe for concurrent use.
type Calls struct {
	mu     sync.Mutex
	count  map[string]int
	before map[string]func() error

	needs  func(why string) // skips a test in which calls cannot be counted
	settle func()           // makes the calls that the service owes to earlier answers
}

// ErrLost, returned by the f of Before, makes the call but loses its answer.
var ErrLost = errors.New("apitest: a failure has lost the answer")

// Before runs f before each call with that name. If f returns an error, the call is
// not made and returns that error. A nil f turns this off. No call that an earlier answer
// left for later comes in between.
func (c *Calls) Before(name string, f func() error) {
	c.needs("it interferes with calls to the stores")
	if f != nil {
		c.settle()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before[name] = f
}

// Reset returns the counts since the last Reset.
func (c *Calls) Reset() map[string]int {
	c.needs("it counts the calls to the stores")
	c.settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	was := maps.Clone(c.count)
	c.count = map[string]int{}
	return was
}

// do counts a call and makes it.
func (c *Calls) do(name string, call func() error) error {
	c.mu.Lock()
	c.count[name]++
	f := c.before[name]
	c.mu.Unlock()
	var err error
	if f != nil {
		err = f()
	}
	if err == nil {
		return call()
	}
	if errors.Is(err, ErrLost) {
		err = errors.Join(call(), err)
	}
	return err
}

// counted is do for a call that returns a value.
func counted[T any](c *Calls, name string, call func() (T, error)) (v T, err error) {
	err = c.do(name, func() (err error) {
		v, err = call()
		return err
	})
	return v, err
}

// countedTable is a table whose calls are counted.
type countedTable struct {
	table.Table
	calls *Calls
}

func (t countedTable) Get(ctx context.Context, key table.Key, into any) error {
	return t.calls.do("table.Get", func() error { return t.Table.Get(ctx, key, into) })
}

func (t countedTable) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	return counted(t.calls, "table.GetMany", func() ([]table.Item, error) {
		return t.Table.GetMany(ctx, keys...)
	})
}

func (t countedTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	return counted(t.calls, "table.Query", func() (table.Page, error) {
		return t.Table.Query(ctx, q)
	})
}

func (t countedTable) Write(ctx context.Context, ops ...table.Op) error {
	return t.calls.do("table.Write", func() error { return t.Table.Write(ctx, ops...) })
}

func (t countedTable) Update(ctx context.Context, op table.Op, into any) error {
	return t.calls.do("table.Update", func() error { return t.Table.Update(ctx, op, into) })
}

// countedStore is a store whose calls are counted.
type countedStore struct {
	blob.Store
	calls *Calls
}

func (s countedStore) Create(
	ctx context.Context,
	area blob.Area,
	key string,
	r io.Reader,
	size int64,
) (blob.Written, error) {
	return counted(s.calls, "blob.Create", func() (blob.Written, error) {
		return s.Store.Create(ctx, area, key, r, size)
	})
}

func (s countedStore) Open(
	ctx context.Context,
	area blob.Area,
	key string,
) (io.ReadSeekCloser, error) {
	return counted(s.calls, "blob.Open", func() (io.ReadSeekCloser, error) {
		return s.Store.Open(ctx, area, key)
	})
}

func (s countedStore) Copy(
	ctx context.Context,
	from blob.Area,
	fromKey string,
	to blob.Area,
	toKey string,
) error {
	return s.calls.do("blob.Copy", func() error {
		return s.Store.Copy(ctx, from, fromKey, to, toKey)
	})
}

func (s countedStore) Delete(ctx context.Context, area blob.Area, key string) error {
	return s.calls.do("blob.Delete", func() error { return s.Store.Delete(ctx, area, key) })
}

func (s countedStore) SetAside(
	ctx context.Context,
	area blob.Area,
	key string,
	day time.Time,
) error {
	return s.calls.do("blob.SetAside", func() error {
		return s.Store.SetAside(ctx, area, key, day)
	})
}

func (s countedStore) List(
	ctx context.Context,
	area blob.Area,
	after string,
	limit int,
) ([]blob.Object, error) {
	return counted(s.calls, "blob.List", func() ([]blob.Object, error) {
		return s.Store.List(ctx, area, after, limit)
	})
}

func (s countedStore) SignGet(
	ctx context.Context,
	area blob.Area,
	key string,
	signed blob.Signed,
) (string, error) {
	return counted(s.calls, "blob.SignGet", func() (string, error) {
		return s.Store.SignGet(ctx, area, key, signed)
	})
}

func (s countedStore) Sweep(
	ctx context.Context,
	before time.Time,
	found func(string) bool,
) (int, error) {
	return counted(s.calls, "blob.Sweep", func() (int, error) {
		return s.Store.Sweep(ctx, before, found)
	})
}

// WriteThenQuery counts as two calls, as in the cloud.
func (t countedTable) WriteThenQuery(
	ctx context.Context,
	q table.Query,
	ops ...table.Op,
) (table.Page, error) {
	if err := t.calls.do("table.Write", func() error { return nil }); err != nil {
		return table.Page{}, err
	}
	return counted(t.calls, "table.Query", func() (table.Page, error) {
		return t.Table.WriteThenQuery(ctx, q, ops...)
	})
}

// countedParts is a blob.Parts whose calls are counted.
type countedParts struct {
	blob.Parts
	calls *Calls
}

func (p countedParts) Begin(
	ctx context.Context,
	area blob.Area,
	key string,
	l blob.Layout,
) (string, error) {
	return counted(p.calls, "parts.Begin", func() (string, error) {
		return p.Parts.Begin(ctx, area, key, l)
	})
}

func (p countedParts) Upload(area blob.Area, key, id string, l blob.Layout) blob.Upload {
	return countedUpload{p.Parts.Upload(area, key, id, l), p.calls}
}

type countedUpload struct {
	upload blob.Upload
	calls  *Calls
}

func (u countedUpload) Sign(
	ctx context.Context,
	number int,
	sum *uint64,
	expires time.Duration,
) (blob.SignedPart, error) {
	return counted(u.calls, "parts.Sign", func() (blob.SignedPart, error) {
		return u.upload.Sign(ctx, number, sum, expires)
	})
}

func (u countedUpload) Write(
	ctx context.Context,
	number int,
	r io.Reader,
	sum *uint64,
) (blob.Part, error) {
	return counted(u.calls, "parts.Write", func() (blob.Part, error) {
		return u.upload.Write(ctx, number, r, sum)
	})
}

func (u countedUpload) List(ctx context.Context) ([]blob.Part, error) {
	return counted(u.calls, "parts.List", func() ([]blob.Part, error) {
		return u.upload.List(ctx)
	})
}

func (u countedUpload) Complete(ctx context.Context, sum *uint64) (blob.Written, error) {
	return counted(u.calls, "parts.Complete", func() (blob.Written, error) {
		return u.upload.Complete(ctx, sum)
	})
}

func (u countedUpload) Abort(ctx context.Context) error {
	return u.calls.do("parts.Abort", func() error { return u.upload.Abort(ctx) })
}
