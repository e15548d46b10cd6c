package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// The units that are only counted.
const (
	requests    = "API Gateway: requests to an HTTP API, each 512 KB"
	invocations = "Lambda: invocations"
	publishes   = "SNS: publications, each 64 KB"
	texts       = "SNS: text messages to the United States"
)

// Assumptions about what cannot be counted in this process, on the high side:
// platformLogBytes is what Lambda itself logs for each event (platform.start and
// platform.report, as JSON), logLineBytes what CloudWatch and Lambda's JSON add to each
// line, accessLogBytes a line of the gateway's access log in the format of
// template.yaml, and headerBytes a response's header.
const platformLogBytes, logLineBytes, accessLogBytes, headerBytes = 700, 26, 450, 600

// meter counts what AWS would charge for the calls to the ports. Tests of dynamo and s3
// named TestEachMethodMakes... pin which call to AWS each method makes.
type meter struct {
	mu    sync.Mutex
	cloud boottest.Cloud // topics, and the providers of mail and text messages
	count *count
	run   *run     // of the function that runs; nil is the caller
	ttl   sync.Map // of keys: an item's expiry costs room too
}

func (m *meter) begin(operation string) {
	m.count = &count{Operation: operation, Runs: map[string]*run{}, Beside: map[string]int{}, Units: map[string]float64{}}
}

func (m *meter) add(unit string, n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 {
		m.count.Units[unit] += n
	}
}

func (m *meter) call(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == nil {
		m.count.Beside[name]++
		return
	}
	m.run.Calls[name]++
}

// beside counts a call that no function makes.
func (m *meter) beside(call, unit string) {
	m.count.Beside[call]++
	m.add(unit, 1)
}

// as runs an event of a function.
func (m *meter) as(function string, f func() error) error {
	if m.count.Runs[function] == nil {
		m.count.Runs[function] = &run{Calls: map[string]int{}}
	}
	m.run = m.count.Runs[function]
	m.run.Events++
	m.cloud.Published, m.cloud.Mails, m.cloud.Texts = nil, nil, nil
	err := f()
	for range m.cloud.Published {
		m.call("SNS PublishBatch")
		m.add(publishes, 1)
	}
	for range m.cloud.Mails {
		m.call("SES SendEmail")
		m.add(mails, 1)
	}
	for _, text := range m.cloud.Texts {
		m.call("SNS Publish")
		m.add(texts, float64(notify.Segments(text.Text)))
	}
	m.run = nil
	m.add(invocations, 1)
	m.add(logBytes, platformLogBytes)
	return err
}

// Write takes a line of the functions' log.
func (m *meter) Write(line []byte) (int, error) {
	m.add(logBytes, float64(len(line)+logLineBytes))
	return len(line), nil
}

// DynamoDB charges a read unit for 4 KB of an item, or of a query's items together, and
// for a missing item. It charges a write unit for 1 KB of an item before or after the
// write, whichever is larger, and twice that in a transaction. All reads here are
// consistent
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html).
const (
	readUnit  = 4 << 10
	writeUnit = 1 << 10
)

// units returns the units for a size, at least one.
func units(size, each int) float64 { return float64(max(1, (size+each-1)/each)) }

type meteredTable struct {
	table.Table
	*meter
}

func (t meteredTable) Get(ctx context.Context, key table.Key, into any) error {
	t.call("DynamoDB GetItem")
	t.add(reads, units(t.sizes(ctx, key)[0], readUnit))
	return t.Table.Get(ctx, key, into)
}

func (t meteredTable) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	t.call("DynamoDB BatchGetItem")
	once := map[table.Key]bool{}
	for _, key := range keys {
		once[key] = true
	}
	for _, size := range t.sizes(ctx, slices.Collect(maps.Keys(once))...) {
		t.add(reads, units(size, readUnit))
	}
	return t.Table.GetMany(ctx, keys...)
}

// Query reads one item more than the page holds, as the backend does.
func (t meteredTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	t.call("DynamoDB Query")
	more := q
	more.Limit = min(q.Limit+1, table.MaxPage)
	page, err := t.Table.Query(ctx, more)
	if err != nil {
		return page, err
	}
	sum := 0
	for _, i := range page.Items {
		sum += t.size(i.Key, i.Raw)
	}
	t.add(reads, units(sum, readUnit))
	return t.Table.Query(ctx, q)
}

func (t meteredTable) Write(ctx context.Context, ops ...table.Op) error {
	if len(ops) == 0 {
		return nil
	}
	name, times := "TransactWriteItems", 2.0
	if len(ops) == 1 && ops[0].Kind != table.KindCheck {
		name, times = []string{"PutItem", "UpdateItem", "DeleteItem"}[ops[0].Kind], 1
	}
	return t.change(ctx, name, times, ops, func() error { return t.Table.Write(ctx, ops...) })
}

func (t meteredTable) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	if err := t.Write(ctx, ops...); err != nil {
		return table.Page{}, err
	}
	return t.Query(ctx, q)
}

func (t meteredTable) Update(ctx context.Context, op table.Op, into any) error {
	return t.change(ctx, "UpdateItem", 1, []table.Op{op}, func() error { return t.Table.Update(ctx, op, into) })
}

// change counts what is written, even if it is refused.
func (t meteredTable) change(ctx context.Context, name string, times float64, ops []table.Op, do func() error) error {
	t.call("DynamoDB " + name)
	keys, least := make([]table.Key, len(ops)), make([]int, len(ops))
	for i, op := range ops {
		keys[i] = op.Key
		if op.Kind == table.KindPut {
			t.ttl.Delete(op.Key)
			text, err := json.Marshal(op.Value)
			if err != nil {
				return err
			}
			least[i] = t.size(op.Key, text)
		}
		if !op.Expires.IsZero() {
			t.ttl.Store(op.Key, true)
		}
	}
	before := t.sizes(ctx, keys...)
	err := do()
	for i, after := range t.sizes(ctx, keys...) {
		t.add(writes, times*units(max(least[i], before[i], after), writeUnit))
	}
	return err
}

// sizes returns the sizes of the existing items.
func (t meteredTable) sizes(ctx context.Context, keys ...table.Key) []int {
	sizes := make([]int, len(keys))
	items, err := t.Table.GetMany(ctx, keys...)
	if err != nil {
		panic(err)
	}
	for i, item := range items {
		if item.Found() {
			sizes[i] = t.size(item.Key, item.Raw)
		}
	}
	return sizes
}

// size returns the size of an item in DynamoDB, with the attributes pk, sk and ttl.
func (t meteredTable) size(key table.Key, attributes []byte) int {
	n := len("pk") + len(key.PK) + len("sk") + len(key.SK) + sizeOfJSON(attributes)
	if _, ok := t.ttl.Load(key); ok {
		n += len("ttl") + 6
	}
	return n
}

// sizeOfJSON returns the size of attributes as DynamoDB counts it: names and values in
// UTF-8, and a byte for two digits of a number
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html).
func sizeOfJSON(text []byte) (n int) {
	var attributes map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&attributes); err != nil {
		panic(err)
	}
	for name, v := range attributes {
		n += len(name) + sizeOf(v)
	}
	return n
}

func sizeOf(v any) (n int) {
	switch v := v.(type) {
	case string:
		return len(v)
	case json.Number:
		return (len(v)+1)/2 + 1
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

// meteredBlobs has objects small enough for one call each.
type meteredBlobs struct {
	blob.Store
	*meter
	bucket string // the address that signed URLs lead to
}

func (b meteredBlobs) one(call, unit string) {
	b.call("S3 " + call)
	if unit != "" {
		b.add(unit, 1)
	}
}

func (b meteredBlobs) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	b.one("PutObject", puts)
	return b.Store.Create(ctx, area, key, r, size)
}

func (b meteredBlobs) Open(ctx context.Context, area blob.Area, key string) (io.ReadSeekCloser, error) {
	b.one("GetObject", gets)
	return b.Store.Open(ctx, area, key)
}

func (b meteredBlobs) Describe(ctx context.Context, area blob.Area, key string) (blob.Written, error) {
	b.one("HeadObject", gets)
	return blob.Measure(ctx, b.Store, area, key, false, func(int64) {})
}

func (b meteredBlobs) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	b.one("CopyObject", puts)
	return b.Store.Copy(ctx, from, fromKey, to, toKey)
}

func (b meteredBlobs) Delete(ctx context.Context, area blob.Area, key string) error {
	b.one("DeleteObject", "")
	return b.Store.Delete(ctx, area, key)
}

func (b meteredBlobs) SetAside(ctx context.Context, area blob.Area, key string, day time.Time) error {
	b.one("DeleteObject", "")
	return b.Store.SetAside(ctx, area, key, day)
}

func (b meteredBlobs) List(ctx context.Context, area blob.Area, after string, limit int) ([]blob.Object, error) {
	b.one("ListObjectsV2", puts)
	return b.Store.List(ctx, area, after, limit)
}

func (b meteredBlobs) Sweep(ctx context.Context, before time.Time, found func(string) bool) (int, error) {
	b.one("ListMultipartUploads", puts) // of each area
	b.one("ListMultipartUploads", puts)
	return b.Store.Sweep(ctx, before, found)
}

func (b meteredBlobs) SignGet(_ context.Context, area blob.Area, key string, _ blob.Signed) (string, error) {
	return fmt.Sprintf("%s/%s/%s", b.bucket, area, key), nil
}

// meteredParts reports all parts as arrived and keeps none.
type meteredParts struct {
	blob.Parts
	meteredBlobs
}

func (p meteredParts) BeginParts(context.Context, blob.Area, string, blob.Layout) (string, error) {
	p.one("CreateMultipartUpload", puts)
	return "upload", nil
}

// SignPart returns a URL as long as those of S3.
func (p meteredParts) SignPart(_ context.Context, area blob.Area, key, _ string, _ blob.Layout, number int, _ *uint64, _ time.Duration) (blob.SignedPart, error) {
	url := fmt.Sprintf("%s/%s/%s?partNumber=%d&%0346d", p.bucket, area, key, number, 0)
	return blob.SignedPart{Method: "PUT", URL: url}, nil
}

func (p meteredParts) ListParts(_ context.Context, _ blob.Area, _, _ string, _, _ int) ([]blob.Part, error) {
	p.one("ListParts", puts)
	return nil, nil
}

func (p meteredParts) CompleteParts(_ context.Context, _ blob.Area, _, _ string, l blob.Layout, sum *uint64) (blob.Written, error) {
	p.one("ListParts", puts)
	p.one("CompleteMultipartUpload", puts)
	w := blob.Written{Size: l.Length}
	if sum != nil {
		w.CRC64NVME = *sum
	}
	return w, nil
}

func (p meteredParts) AbortParts(context.Context, blob.Area, string, string) error {
	p.one("AbortMultipartUpload", "")
	return nil
}
