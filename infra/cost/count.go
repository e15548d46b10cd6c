package main

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/mail"
	"ferry/shared/relay"
	"ferry/shared/table"
)

// bill counts what AWS would.
type bill struct {
	mu    sync.Mutex
	units map[unit]float64
	calls map[string]int // of the SDK
}

func newBill() *bill { return &bill{units: map[unit]float64{}, calls: map[string]int{}} }

func (b *bill) add(u unit, n float64, call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.units[u] += n
	if call != "" {
		b.calls[call]++
	}
}

// countedTable counts units as DynamoDB does: reads, all consistent, by 4 KB,
// writes by 1 KB and twice in a transaction.
type countedTable struct {
	table.Table
	*bill
}

func (t countedTable) Get(ctx context.Context, key table.Key, into any) error {
	err := t.Table.Get(ctx, key, into)
	t.add(reads, 1, "GetItem")
	return err
}

func (t countedTable) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	t.add(reads, float64(len(keys)), "BatchGetItem")
	return t.Table.GetMany(ctx, keys...)
}

func (t countedTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	page, err := t.Table.Query(ctx, q)
	t.page(page)
	return page, err
}

func (t countedTable) page(p table.Page) {
	size := 0
	for _, item := range p.Items {
		size += bytesOf(item.Key) + len(item.Raw)
	}
	t.add(reads, float64(max(1, (size+4095)/4096)), "Query")
}

func (t countedTable) Write(ctx context.Context, ops ...table.Op) error {
	t.write(ops)
	return t.Table.Write(ctx, ops...)
}

func (t countedTable) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	t.write(ops)
	page, err := t.Table.WriteThenQuery(ctx, q, ops...)
	t.page(page)
	return page, err
}

func (t countedTable) Update(ctx context.Context, op table.Op, into any) error {
	t.write([]table.Op{op})
	return t.Table.Update(ctx, op, into)
}

func (t countedTable) write(ops []table.Op) {
	each, call := 1.0, "PutItem, UpdateItem or DeleteItem"
	if len(ops) > 1 {
		each, call = 2, "TransactWriteItems"
	}
	n := 0.0
	for _, op := range ops {
		n += each * float64(max(1, (bytesOf(op.Key)+bytesOf(op.Value)+1023)/1024))
	}
	if len(ops) > 0 {
		t.add(writes, n, call)
	}
}

// bytesOf is about the size of an item: the names of its attributes count too.
func bytesOf(v any) int {
	text, err := json.Marshal(v)
	if v == nil || err != nil {
		return 0
	}
	return len(text)
}

type countedBlobs struct {
	blob.Store
	*bill
}

func (s countedBlobs) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	s.add(puts, 1, "PutObject")
	return s.Store.Create(ctx, area, key, r, size)
}

// cloud takes what functions give to topics, queues and SES.
type cloud struct {
	*bill
	published map[relay.Topic][]relay.Message
}

func (c *cloud) Publish(_ context.Context, to relay.Topic, messages []relay.Message) []error {
	size := 0
	for _, m := range messages {
		size += len(m.Body) + len(m.Attribute) + len(m.Value)
	}
	c.add(publishes, float64(size/(64<<10)+1), "PublishBatch")
	c.published[to] = append(c.published[to], messages...)
	return make([]error, len(messages))
}

func (c *cloud) Delay(context.Context, string, time.Duration) error {
	c.add(queueCalls, 1, "ChangeMessageVisibility")
	return nil
}

func (c *cloud) Send(context.Context, mail.Message) (string, error) {
	c.add(mails, 1, "SendEmail")
	return "mail", nil
}
