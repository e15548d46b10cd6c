package apitest_test

import (
	"context"
	"strconv"
	"sync/atomic"

	"ferry/shared/table"
)

// meter counts the units that DynamoDB charges: a read unit for 4 KB of an item, or of a
// query's items together, and for a missing item; a write unit for 1 KB of an item before
// or after the write, whichever is larger, and twice that in a transaction. All reads here
// are consistent
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html).
type meter struct {
	table.Table
	unmetered     table.Table
	reads, writes atomic.Int64
}

const readUnit, writeUnit = 4 << 10, 1 << 10

// units returns the units for a size, at least one.
func units(size, each int) int64 { return int64(max(1, (size+each-1)/each)) }

func (m *meter) Get(ctx context.Context, key table.Key, into any) error {
	m.read(ctx, key)
	return m.Table.Get(ctx, key, into)
}

func (m *meter) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	m.read(ctx, keys...)
	return m.Table.GetMany(ctx, keys...)
}

func (m *meter) read(ctx context.Context, keys ...table.Key) {
	for _, size := range m.sizes(ctx, keys...) {
		m.reads.Add(units(size, readUnit))
	}
}

// Query reads one item more than the page holds, as the backend does.
func (m *meter) Query(ctx context.Context, q table.Query) (table.Page, error) {
	more, sum := q, 0
	more.Limit = min(q.Limit+1, table.MaxPage)
	page, err := m.unmetered.Query(ctx, more)
	if err != nil {
		return page, err
	}
	for _, item := range page.Items {
		sum += size(item)
	}
	m.reads.Add(units(sum, readUnit))
	return m.Table.Query(ctx, q)
}

func (m *meter) Write(ctx context.Context, ops ...table.Op) error {
	return m.change(ctx, ops, func() error { return m.Table.Write(ctx, ops...) })
}

func (m *meter) Update(ctx context.Context, op table.Op, into any) error {
	return m.change(ctx, []table.Op{op}, func() error { return m.Table.Update(ctx, op, into) })
}

// WriteThenQuery is two calls in the cloud.
func (m *meter) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	if err := m.Write(ctx, ops...); err != nil {
		return table.Page{}, err
	}
	return m.Query(ctx, q)
}

func (m *meter) change(ctx context.Context, ops []table.Op, do func() error) error {
	keys, times := make([]table.Key, len(ops)), int64(2)
	for i, op := range ops {
		keys[i] = op.Key
	}
	if len(ops) == 1 && ops[0].Kind != table.KindCheck {
		times = 1
	}
	before := m.sizes(ctx, keys...)
	err := do()
	for i, after := range m.sizes(ctx, keys...) {
		m.writes.Add(times * units(max(before[i], after), writeUnit))
	}
	return err
}

// sizes returns the sizes of items in DynamoDB, 0 for a missing one.
func (m *meter) sizes(ctx context.Context, keys ...table.Key) []int {
	sizes := make([]int, len(keys))
	items, err := m.unmetered.GetMany(ctx, keys...)
	if err != nil {
		panic(err)
	}
	for i, item := range items {
		if item.Found() {
			sizes[i] = size(item)
		}
	}
	return sizes
}

// size is that of names and values in UTF-8, with a byte for two digits of a number. It
// leaves out an item's ttl, 9 bytes
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html).
func size(item table.Item) int {
	var attributes map[string]any
	if err := item.Decode(&attributes); err != nil {
		panic(err)
	}
	n := len("pk") + len(item.Key.PK) + len("sk") + len(item.Key.SK)
	for name, v := range attributes {
		n += len(name) + sizeOf(v)
	}
	return n
}

func sizeOf(v any) (n int) {
	switch v := v.(type) {
	case string:
		return len(v)
	case float64:
		return (len(strconv.FormatFloat(v, 'f', -1, 64))+1)/2 + 1
	case []any:
		for _, element := range v {
			n += 1 + sizeOf(element)
		}
		return n + 3
	case map[string]any:
		for name, element := range v {
			n += 1 + len(name) + sizeOf(element)
		}
		return n + 3
	}
	return 1 // true, false, null
}
