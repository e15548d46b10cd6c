// Package table is the port to Ferry's one key-value table. Its model is
// DynamoDB's, because that is the backend with the fewest liberties: items under
// a partition key and a sort key, conditional writes, small transactions,
// atomic counters, and expiry that only cleans up.
//
// Values are structs with json tags. A tag's name is the name of the attribute
// that Set, Add and conditions refer to. Use strings, integers, booleans,
// slices of these and nested structs; the tag options omitempty and "-" work,
// others do not. A value may not have attributes named pk, sk or ttl.
//
// All methods of a Table are safe for concurrent use.
//
// The package imports nothing of Ferry. Start reading with Table.
package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Bounds that every backend keeps, so that code which passes on one passes on the other.
const (
	MaxKeys = 100  // keys in one GetMany
	MaxOps  = 100  // operations in one Write
	MaxPage = 1000 // items in one Query

	MaxItem  = 400 << 10 // bytes of one item, its attributes' names included
	MaxWrite = 4 << 20   // bytes of all items in one Write
)

var (
	// ErrNotFound is returned by Get for an item that is not there.
	ErrNotFound = errors.New("table: item not found")
	// ErrCondition matches (errors.Is) a write refused by one of its
	// conditions. Nothing of that write happened.
	ErrCondition = errors.New("table: condition not met")
	// ErrBusy is returned when contention or throttling lasted longer than
	// the backend was willing to retry. Nothing of that write happened.
	ErrBusy = errors.New("table: busy")
	// ErrUnread is returned by WriteThenQuery when all was written and the
	// page could not be read.
	ErrUnread = errors.New("table: written, but not read back")
	// ErrFull is returned when the medium under the table has no room.
	ErrFull = errors.New("table: no space left")
)

// ConditionError tells which operation of a Write was refused. When several
// are refused at once, Op is the first.
type ConditionError struct{ Op int }

func (e *ConditionError) Error() string { return fmt.Sprintf("%v (operation %d)", ErrCondition, e.Op) }

// Is makes errors.Is(err, ErrCondition) true.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// Key names one item. Neither part may be empty; PK holds at most 2048 and SK
// at most 1024 bytes, both UTF-8. Sort keys are ordered by their bytes.
type Key struct{ PK, SK string }

func (k Key) String() string { return k.PK + " " + k.SK }

// Item is a stored item, or the trace of one that was asked for and is missing.
type Item struct {
	Key Key
	// Raw is the stored form of the attributes, if the backend has one: items
	// of equal Raw decode alike. It must not be changed.
	Raw    []byte
	decode func(i Item, into any) error
}

// NewItem is for backends. A missing item has no decode.
func NewItem(key Key, raw []byte, decode func(i Item, into any) error) Item {
	return Item{key, raw, decode}
}

// Found reports whether the item exists.
func (i Item) Found() bool { return i.decode != nil }

// Decode stores the item's attributes in the struct that into points to, or the
// item itself in an Item. It returns ErrNotFound if the item is missing, and
// leaves into as it was.
func (i Item) Decode(into any) error {
	if i.decode == nil {
		return ErrNotFound
	}
	if item, ok := into.(*Item); ok {
		*item = i
		return nil
	}
	return i.decode(i, into)
}

// Query asks for items of one partition in the order of their sort keys.
type Query struct {
	PK         string
	After      string // exclusive: start behind this sort key, in the direction of the query; no item need have it
	Descending bool
	Limit      int // 1 to MaxPage
}

// Each yields the items of a partition in the order of q, from q.After on, with
// one call to the store for each page. An error ends it.
func Each(ctx context.Context, t Table, q Query) iter.Seq2[Item, error] {
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

// Page is one page of a Query. More reports that at least one further item
// followed the last when the page was read. A page holds Limit items if there
// are that many; only items of more than 1 MB together may end it earlier, and
// then at least one is there and More is true.
type Page struct {
	Items []Item
	More  bool
}

// Table is the port. Reads see every write that was answered before they
// began (strong consistency). An item whose expiry has passed may still be
// returned: callers check expiry themselves. Input outside the stated bounds,
// or a context that has ended, is an error, and nothing is written.
type Table interface {
	// Get decodes the item into what into points to, as Item.Decode does, or
	// returns ErrNotFound. One call to the store.
	Get(ctx context.Context, key Key, into any) error

	// GetMany returns an item for each key, in the order of the keys, which
	// may repeat; a missing one has Found() == false. One call to the store. The items are
	// each consistent, but not a snapshot of one instant.
	GetMany(ctx context.Context, keys ...Key) ([]Item, error)

	// Query returns one page, which is empty, not an error, for an unknown
	// partition. One call to the store.
	Query(ctx context.Context, q Query) (Page, error)

	// Write does all operations or none, isolated from other writes, in one
	// call to the store. Without operations it does nothing. No two
	// operations may name the same key. A refused condition is a *ConditionError. When the context ends while a write is
	// under way its outcome is unknown.
	Write(ctx context.Context, ops ...Op) error

	// WriteThenQuery does a Write and, if that succeeds, a Query whose page
	// shows what was written. Two calls; a backend that can do both at once
	// with less work does. When the write succeeded and the query did not,
	// the error matches ErrUnread.
	WriteThenQuery(ctx context.Context, q Query, ops ...Op) (Page, error)

	// Update does one operation made by the function Update and decodes the
	// item as it is afterwards into the struct that into points to. One call.
	Update(ctx context.Context, op Op, into any) error

	// Scan calls yield for every item of the table in no stated order, until
	// yield returns an error, which Scan then returns. It is for backup and
	// for tests: its cost grows with the table.
	Scan(ctx context.Context, yield func(Item) error) error
}

// Kind of an operation.
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
	Expires time.Time // KindPut and KindUpdate: zero leaves the item without (Put) or with its old (Update) expiry
	Relaxed bool
	Delayed bool
}

// Put stores value under key and replaces what was there.
func Put(key Key, value any) Op { return Op{Kind: KindPut, Key: key, Value: value} }

// Update changes single attributes. An item that is missing is created with
// just these attributes; add If(Exists()) where that is not wanted.
func Update(key Key) Op { return Op{Kind: KindUpdate, Key: key} }

// Delete removes the item. Removing one that is not there is no error, unless
// a condition says so.
func Delete(key Key) Op { return Op{Kind: KindDelete, Key: key} }

// Check writes nothing; its conditions bind the rest of the Write.
func Check(key Key, conds ...Cond) Op { return Op{Kind: KindCheck, Key: key, Conds: conds} }

// Set gives an attribute a value: a string, bool, integer, or slice of these.
func (o Op) Set(attr string, value any) Op {
	o.Changes = append(o.Changes[:len(o.Changes):len(o.Changes)], Change{Attr: attr, Value: value})
	return o
}

// Add adds n to an integer attribute; a missing one counts as 0, one of
// another type is an error. The sum must stay an int64.
func (o Op) Add(attr string, n int64) Op {
	o.Changes = append(o.Changes[:len(o.Changes):len(o.Changes)], Change{Attr: attr, Value: n, Add: true})
	return o
}

// If adds conditions on the item as it is before the operation.
func (o Op) If(conds ...Cond) Op {
	o.Conds = append(o.Conds[:len(o.Conds):len(o.Conds)], conds...)
	return o
}

// Expire lets the store remove the item some time after t (whole seconds). It
// may take days: code that must not see an expired item checks for itself.
func (o Op) Expire(t time.Time) Op {
	o.Expires = t
	return o
}

// Relax allows a backend to answer before the write is on durable storage: it
// survives the end of the process, and a loss of power only if a later write
// that is not relaxed was answered. For counters whose loss harms nothing.
func (o Op) Relax() Op {
	o.Relaxed = true
	return o
}

// Delay allows a backend to do an update up to a second later and to merge it
// with others of the same item, if it is alone in its Write. Then a condition
// that does not hold is not told, and the update is lost if the process is
// killed before. For statistics.
func (o Op) Delay() Op {
	o.Delayed, o.Relaxed = true, true
	return o
}

// Change of one attribute in an update. An update changes an attribute at most once.
type Change struct {
	Attr  string
	Value any
	Add   bool // add Value, an int64, instead of setting it
}

// Test is what a condition compares.
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

// Equal holds if the attribute is there and has this value and type: a string, bool or integer.
func Equal(attr string, value any) Cond { return Cond{Test: TestEqual, Attr: attr, Value: value} }

// AtMost holds if the integer attribute is n or less; a missing attribute, or
// a missing item, counts as 0. It does not hold for an attribute of another type.
func AtMost(attr string, n int64) Cond { return Cond{Test: TestAtMost, Attr: attr, Value: n} }
