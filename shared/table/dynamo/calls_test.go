package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"ferry/shared/boot/expect"
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

// take returns the calls, such as "GetItem:1", and forgets them.
func (c *calls) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := fmt.Sprint(c.n) // sorted
	clear(c.n)
	return strings.TrimSuffix(strings.TrimPrefix(taken, "map["), "]")
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
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{
			name: "a write of 100 puts",
			do:   func() error { return tbl.Write(ctx, puts...) },
			want: "TransactWriteItems:1",
		},
		{
			name: "a put",
			do:   func() error { return tbl.Write(ctx, table.Put(key(0), value{Name: "n"})) },
			want: "PutItem:1",
		},
		{name: "a refused put", do: func() error {
			err := tbl.Write(ctx, table.Put(key(0), value{}).If(table.NotExists()))
			expect.Err(t, "a refused put", err, table.ErrCondition)
			return nil
		}, want: "PutItem:1"},
		{name: "an update", do: func() error {
			return tbl.Update(ctx, table.Update(key(0)).Add("count", 1), &value{})
		}, want: "UpdateItem:1"},
		{
			name: "a check",
			do:   func() error { return tbl.Write(ctx, table.Check(key(0), table.Exists())) },
			want: "TransactWriteItems:1",
		},
		{name: "a get", do: func() error { return tbl.Get(ctx, key(0), &value{}) }, want: "GetItem:1"},
		{
			name: "a get of 100 items",
			do:   func() error { _, err := tbl.GetMany(ctx, keys...); return err },
			want: "BatchGetItem:1",
		},
		{
			name: "a query",
			do:   func() error { _, err := tbl.Query(ctx, table.Query{PK: "p", Limit: 100}); return err },
			want: "Query:1",
		},
		{
			name: "a scan of a small table",
			do:   func() error { return tbl.Scan(ctx, func(table.Item) error { return nil }) },
			want: "Scan:1",
		},
		{name: "a delete", do: func() error { return tbl.Write(ctx, table.Delete(key(0))) }, want: "DeleteItem:1"},
		{name: "a write without operations", do: func() error { return tbl.Write(ctx) }},
		{name: "a get without keys", do: func() error { _, err := tbl.GetMany(ctx); return err }},
	} {
		must(t, step.do())
		if got := counted.take(); got != step.want {
			t.Errorf("%s made the calls %s, want %s", step.name, got, step.want)
		}
	}
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
	err := write(table.Put(item, value{Name: "other"}).If(table.NotExists()))
	expect.Err(t, "a put that was refused", err, table.ErrCondition)
	err = write(table.Update(item).Add("count", 1).If(table.AtMost("count", 1)))
	if err == nil || errors.Is(err, table.ErrCondition) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("an update that was done: got error %v, want one that says the outcome is unknown", err)
	}
	err = write(table.Update(counter).Add("count", 1).If(table.AtMost("count", 0)), table.Put(table.Key{
		PK: "p",
		SK: "mark",
	}, value{}).If(table.NotExists()))
	must(t, err)
	var got value
	if err := tbl.Get(t.Context(), counter, &got); err != nil || got.Count != 1 {
		t.Errorf("the counter is %d, %v; want 1", got.Count, err)
	}
}
