// Package table is the port to Ferry's one key-value table. Start reading with
// Table; README.md lists the items.
//
// The model is DynamoDB's, because that backend allows the least: items under a
// partition key and a sort key, conditional writes, small transactions, atomic
// counters, and expiry that only cleans up.
//
// Values are structs with json tags. The name in a tag is the attribute's name in
// Set, Add and conditions. Use strings, integers, booleans, slices of these and
// nested structs; of the tags' options, only omitempty and "-" work. A value may
// not have attributes named pk, sk or ttl.
//
// All methods of a Table are safe for concurrent use.
package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Bounds that every backend enforces, so that code that works with one backend
// works with the other.
const (
	MaxKeys = 100  // keys in one GetMany
	MaxOps  = 100  // operations in one Write
	MaxPage = 1000 // items in one Query

	MaxItem  = 400 << 10 // bytes of one item, its attributes' names included
	MaxWrite = 4 << 20   // bytes of all items in one Write
)

var (
	// ErrNotFound is returned by Get for a missing item.
	ErrNotFound = errors.New("table: item not found")
	// ErrCondition matches (errors.Is) a write that one of its conditions
	// refused. No part of that write happened.
	ErrCondition = errors.New("table: condition not met")
	// ErrBusy is returned if contention or throttling lasted longer than the
	// backend retries. No part of that write happened.
	ErrBusy = errors.New("table: busy")
	// ErrUnread is returned by WriteThenQuery if everything was written but the
	// page could not be read.
	ErrUnread = errors.New("table: written, but not read back")
	// ErrUnreadable is returned for an item that cannot be decoded: it is damaged, or an
	// attribute has another type than the struct's field.
	ErrUnreadable = errors.New("table: item cannot be read")
	// ErrFull is returned if the table's medium has no room.
	ErrFull = errors.New("table: no space left")
)

// ConditionError tells which operation of a Write was refused. If several were,
// Op is the first.
type ConditionError struct{ Op int }

func (e *ConditionError) Error() string {
	return fmt.Sprintf("%v (operation %d)", ErrCondition, e.Op)
}

// Is makes errors.Is(err, ErrCondition) true.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// Key names one item. Neither part may be empty. PK has at most 2048 bytes and SK
// at most 1024, both of UTF-8. Sort keys are in byte order.
type Key struct{ PK, SK string }

func (k Key) String() string { return k.PK + " " + k.SK }

// Item is a stored item, or stands for a missing one.
type Item struct {
	Key Key
	// Raw is the stored form of the attributes, if the backend has one: items
	// with equal Raw decode alike. It must not be changed.
	Raw    []byte
	decode func(i Item, into any) error
}

// NewItem is for backends. For a missing item, decode is nil.
func NewItem(key Key, raw []byte, decode func(i Item, into any) error) Item {
	return Item{key, raw, decode}
}

// Found reports whether the item exists.
func (i Item) Found() bool { return i.decode != nil }

// Decode stores the item's attributes in the struct that into points to, or the
// item itself if into is an *Item. If the item is missing, it returns ErrNotFound
// and leaves into unchanged. If it cannot be decoded, the error is ErrUnreadable.
func (i Item) Decode(into any) error {
	if i.decode == nil {
		return ErrNotFound
	}
	if item, ok := into.(*Item); ok {
		*item = i
		return nil
	}
	if err := i.decode(i, into); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return nil
}

// Query asks for items of one partition in the order of their sort keys.
type Query struct {
	PK         string
	After      string // start after this sort key, in the direction of the query; it need not exist
	Descending bool
	Limit      int // 1 to MaxPage
}

// Each yields the items of a partition after q.After, in the order of q, with one
// call to the store for each page, of MaxPage items if q has no Limit. An error ends it.
func Each(ctx context.Context, t Table, q Query) iter.Seq2[Item, error] {
	q.Limit = cmp.Or(q.Limit, MaxPage)
	return func(yield func(Item, error) bool) {
		for more := true; more; {
			page, err := t.Query(ctx, q)
			if err != nil {
				yield(Item{}, fmt.Errorf("reading %s: %w", q.PK, err))
				return
			}
			for _, item := range page.Items {
				q.After = item.Key.SK
				if !yield(item, nil) {
					return
				}
			}
			more = page.More
		}
	}
}

// Page is one page of a Query. More reports that at least one more item followed
// when the page was read. A page has Limit items if there are that many. It may
// end earlier only if its items exceed 1 MB together; then it has at least one,
// and More is true.
type Page struct {
	Items []Item
	More  bool
}

// Table is the port. Reads see every write that was answered before they began
// (strong consistency). An expired item may still be returned: callers check
// expiry themselves. If the input is outside the stated bounds or the context has
// ended, there is an error and nothing is written.
type Table interface {
	// Get decodes the item as Item.Decode does, or returns ErrNotFound. One
	// call to the store.
	Get(ctx context.Context, key Key, into any) error

	// GetMany returns an item for each key, in the order of the keys, which
	// may repeat; Found() is false for a missing item. One call to the store.
	// Each item is consistent, but together they are not a snapshot.
	GetMany(ctx context.Context, keys ...Key) ([]Item, error)

	// Query returns one page. For an unknown partition it is empty, without an
	// error. One call to the store.
	Query(ctx context.Context, q Query) (Page, error)

	// Write does all operations or none, isolated from other writes, in one
	// call to the store. Without operations it does nothing. No two operations
	// may have the same key. If a condition does not hold, it returns a
	// *ConditionError. If the context ends meanwhile, the outcome is unknown.
	Write(ctx context.Context, ops ...Op) error

	// WriteThenQuery does a Write and, if that succeeds, a Query whose page
	// shows what was written. Two calls, or less where a backend can do both
	// at once. If only the query fails, the error matches ErrUnread.
	WriteThenQuery(ctx context.Context, q Query, ops ...Op) (Page, error)

	// Update does one operation made by the function Update, and decodes the
	// new item into the struct that into points to. One call to the store.
	Update(ctx context.Context, op Op, into any) error

	// DeleteExpired removes the items that expire at or before now, unless the store does so by
	// itself, and returns how many it has removed. A server calls it from time to time.
	DeleteExpired(ctx context.Context, now time.Time) (int, error)

	// Scan calls yield for every item of the table, in any order. If yield
	// returns an error, Scan returns it at once. It is for backups and tests:
	// its cost grows with the table.
	Scan(ctx context.Context, yield func(Item) error) error
}

// Kind is the kind of an operation.
type Kind int

// The kinds of operation.
const (
	KindPut Kind = iota
	KindUpdate
	KindDelete
	KindCheck
)

// Op is one operation of a Write. Build it with Put, Update, Delete or Check;
// each method returns a changed copy.
type Op struct {
	Kind    Kind
	Key     Key
	Value   any       // KindPut: a struct
	Changes []Change  // KindUpdate
	Conds   []Cond    // all must hold
	Expires time.Time // KindPut and KindUpdate: if zero, a Put leaves no expiry, and an Update keeps the old one
	Relaxed bool
}

// Put stores value under key and replaces an existing item.
func Put(key Key, value any) Op { return Op{Kind: KindPut, Key: key, Value: value} }

// Update changes single attributes. A missing item is created with just these
// attributes; to prevent that, add If(Exists()).
func Update(key Key) Op { return Op{Kind: KindUpdate, Key: key} }

// Delete removes the item. Removing a missing one is no error, unless a condition
// requires it.
func Delete(key Key) Op { return Op{Kind: KindDelete, Key: key} }

// Check writes nothing. The rest of the Write happens only if its conditions hold.
func Check(key Key, conds ...Cond) Op { return Op{Kind: KindCheck, Key: key, Conds: conds} }

// Set gives an attribute a value: a string, bool, integer, nested struct, or slice of these.
func (o Op) Set(attr string, value any) Op {
	o.Changes = append(slices.Clip(o.Changes), Change{Attr: attr, Value: value})
	return o
}

// Add adds n to an integer attribute. A missing one counts as 0; another type is
// an error. The sum must fit into an int64.
func (o Op) Add(attr string, n int64) Op {
	o.Changes = append(slices.Clip(o.Changes), Change{Attr: attr, Value: n, Add: true})
	return o
}

// If adds conditions on the item before the operation.
func (o Op) If(conds ...Cond) Op {
	o.Conds = append(slices.Clip(o.Conds), conds...)
	return o
}

// Expire lets the store remove the item some time after t (in whole seconds).
// That may take days: code that must not see an expired item checks for itself.
func (o Op) Expire(t time.Time) Op {
	o.Expires = t
	return o
}

// Relax allows a backend to answer before the write is durable: it survives the
// end of the process, but a loss of power only if a later write that is not
// relaxed was answered. It is for counters whose loss does no harm.
func (o Op) Relax() Op {
	o.Relaxed = true
	return o
}

// Change changes one attribute in an update, which may change it only once.
type Change struct {
	Attr  string
	Value any
	Add   bool // add Value, an int64, instead of setting it
}

// Test is the kind of a condition.
type Test int

// The tests.
const (
	TestExists Test = iota
	TestNotExists
	TestEqual
	TestAtMost
)

// Cond is a condition on one item.
type Cond struct {
	Test  Test
	Attr  string
	Value any // TestEqual: string, bool or integer. TestAtMost: int64
}

// Exists holds if the item is there.
func Exists() Cond { return Cond{Test: TestExists} }

// NotExists holds if the item is not there.
func NotExists() Cond { return Cond{Test: TestNotExists} }

// Equal holds if the attribute has this value and type: a string, bool or integer.
func Equal(attr string, value any) Cond {
	return Cond{Test: TestEqual, Attr: attr, Value: value}
}

// AtMost holds if the integer attribute is n or less. A missing attribute or item
// counts as 0. For an attribute of another type it does not hold.
func AtMost(attr string, n int64) Cond { return Cond{Test: TestAtMost, Attr: attr, Value: n} }
