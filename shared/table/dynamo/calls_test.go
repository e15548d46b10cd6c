package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"ferry/shared/table"
	"ferry/shared/table/dynamo"
)

type value struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// calls counts the SDK's calls by operation, each once however often it is retried.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) count(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CountCalls",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				c.mu.Lock()
				c.n[awsmiddleware.GetOperationName(ctx)]++
				c.mu.Unlock()
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
	})
}

func (c *calls) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.n
	c.n = map[string]int{}
	return taken
}

func TestEachMethodMakesOneCall(t *testing.T) {
	t.Parallel()
	counted := &calls{n: map[string]int{}}
	client, name := connect(t, counted.count)
	tbl := dynamo.New(client, name)
	key := func(i int) table.Key { return table.Key{PK: "p", SK: fmt.Sprintf("k%04d", i)} }
	var keys []table.Key
	var puts []table.Op
	for i := range table.MaxOps {
		keys = append(keys, key(i))
		puts = append(puts, table.Put(key(i), value{}))
	}
	ctx := t.Context()
	steps := []struct {
		name string
		do   func() error
		want map[string]int
	}{
		{"a write of 100 puts", func() error { return tbl.Write(ctx, puts...) }, map[string]int{"TransactWriteItems": 1}},
		{"a put", func() error { return tbl.Write(ctx, table.Put(key(0), value{Name: "n"})) }, map[string]int{"PutItem": 1}},
		{"a refused put", func() error {
			return expect(tbl.Write(ctx, table.Put(key(0), value{}).If(table.NotExists())), table.ErrCondition)
		}, map[string]int{"PutItem": 1}},
		{"an update in a write", func() error { return tbl.Write(ctx, table.Update(key(0)).Add("count", 1)) }, map[string]int{"UpdateItem": 1}},
		{"an update", func() error { return tbl.Update(ctx, table.Update(key(0)).Add("count", 1), &value{}) }, map[string]int{"UpdateItem": 1}},
		{"a check", func() error { return tbl.Write(ctx, table.Check(key(0), table.Exists())) }, map[string]int{"TransactWriteItems": 1}},
		{"a get", func() error { return tbl.Get(ctx, key(0), &value{}) }, map[string]int{"GetItem": 1}},
		{"a get of a missing item", func() error { return expect(tbl.Get(ctx, key(1000), &value{}), table.ErrNotFound) }, map[string]int{"GetItem": 1}},
		{"a get of 100 items", func() error { _, err := tbl.GetMany(ctx, keys...); return err }, map[string]int{"BatchGetItem": 1}},
		{"a query", func() error { _, err := tbl.Query(ctx, table.Query{PK: "p", Limit: 100}); return err }, map[string]int{"Query": 1}},
		{"a scan of a small table", func() error { return tbl.Scan(ctx, func(table.Item) error { return nil }) }, map[string]int{"Scan": 1}},
		{"a delete", func() error { return tbl.Write(ctx, table.Delete(key(0))) }, map[string]int{"DeleteItem": 1}},
		{"a write without operations", func() error { return tbl.Write(ctx) }, map[string]int{}},
		{"a get without keys", func() error { _, err := tbl.GetMany(ctx); return err }, map[string]int{}},
	}
	for _, step := range steps {
		must(t, step.do())
		if got := counted.take(); !maps.Equal(got, step.want) {
			t.Errorf("%s made the calls %v, want %v", step.name, got, step.want)
		}
	}
}

func expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got error %v, want %w", err, want)
	}
	return nil
}

// lossy sends each request, but if lose is set it loses the next answer.
type lossy struct {
	next http.RoundTripper
	lose atomic.Bool
}

func (l *lossy) Do(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err == nil && l.lose.CompareAndSwap(true, false) {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return resp, err
}

func TestALostAnswerIsNotReportedAsARefusal(t *testing.T) {
	t.Parallel()
	wire := &lossy{next: http.DefaultTransport}
	client, name := connect(t, func(o *dynamodb.Options) { o.HTTPClient = wire })
	tbl := dynamo.New(client, name)
	write := func(ops ...table.Op) error {
		wire.lose.Store(true)
		return tbl.Write(t.Context(), ops...)
	}
	counter, item := table.Key{PK: "p", SK: "counter"}, table.Key{PK: "p", SK: "item"}

	must(t, write(table.Put(item, value{Name: "mine", Count: 1}).If(table.NotExists())))
	if err := write(table.Put(item, value{Name: "other"}).If(table.NotExists())); !errors.Is(err, table.ErrCondition) {
		t.Errorf("a put that was refused: got error %v, want ErrCondition", err)
	}
	err := write(table.Update(item).Add("count", 1).If(table.AtMost("count", 1)))
	if err == nil || errors.Is(err, table.ErrCondition) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("an update that was done: got error %v, want one that says the outcome is unknown", err)
	}
	err = write(table.Update(counter).Add("count", 1).If(table.AtMost("count", 0)), table.Put(table.Key{PK: "p", SK: "mark"}, value{}).If(table.NotExists()))
	must(t, err)
	var got value
	if err := tbl.Get(t.Context(), counter, &got); err != nil || got.Count != 1 {
		t.Errorf("the counter is %d, %v; want 1", got.Count, err)
	}
}
