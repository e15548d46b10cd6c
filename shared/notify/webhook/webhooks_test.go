package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/table"

	"ferry/shared/notify"
	"ferry/shared/notify/webhook"
)

func TestEachEventIsDeliveredAndForgotten(t *testing.T) {
	t.Parallel()
	b, r := begin(t), receive(t)
	b.happen(130) // more than a transaction and a pass take
	d := b.dispatcher([]string{r.URL})
	for sent := 0; sent < 130; {
		n := b.deliver(d)
		if n == 0 {
			t.Fatalf("a pass takes nothing after %d events", sent)
		}
		sent += n
	}
	r.once(t, 130)
	if n := b.left(); n != 0 {
		t.Errorf("%d items are left", n)
	}
}

func TestEachAddressHasAProgressOfItsOwn(t *testing.T) {
	t.Parallel()
	b, good, bad := begin(t), receive(t), receive(t)
	bad.status.Store(500)
	d := b.dispatcher([]string{bad.URL, good.URL, good.URL + "/other", good.URL})
	b.happen(3)
	if n := b.deliver(d); n != 6 {
		t.Errorf("%d deliveries were taken, want 3 by each that answers", n)
	}
	bad.once(t, 0)
	bad.status.Store(200)
	if n := b.deliver(d); n != 0 {
		t.Errorf("%d were tried again at once", n)
	}
	b.advance(time.Second)
	if n := b.deliver(d); n != 3 {
		t.Errorf("%d were taken after a second, want 3", n)
	}
	bad.once(t, 3)
	if n := b.left(); n != 0 {
		t.Errorf("%d items are left", n)
	}
}

func TestAnEventIsTriedForADayAndThenGivenUp(t *testing.T) {
	t.Parallel()
	b, r := begin(t), receive(t)
	r.status.Store(503)
	d := b.dispatcher([]string{r.URL})
	b.happen(1)
	for range 26 * 12 {
		b.deliver(d)
		b.advance(5 * time.Minute)
	}
	if n := r.tries.Load(); n < 25 || n > 50 {
		t.Errorf("it was tried %d times", n)
	}
	if n := b.left(); n != 0 {
		t.Errorf("%d items are left", n)
	}
	if !strings.Contains(b.log.String(), "level=ERROR msg=\"an event was given up\"") {
		t.Error("nothing is logged")
	}
}

func TestAnAnswerDecidesHowItGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what       string
		status     int
		retryAfter string
		taken      bool          // at once
		again      time.Duration // 0: never
	}{
		{"200", 200, "", true, 0},
		{"202", 202, "", true, 0},
		{"a redirect", 307, "", false, time.Second},
		{"a refusal", 400, "", false, time.Second},
		{"a login", 401, "", false, time.Second},
		{"no more, please", 410, "", false, 0},
		{"later", 429, "120", false, 120 * time.Second},
		{"much later", 503, "999999999", false, time.Hour},
		{"some day", 503, "Fri, 31 Dec 2100 23:59:59 GMT", false, time.Second},
		{"nonsense", 503, "-5", false, time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			b, r := begin(t), receive(t)
			other := receive(t)
			r.status.Store(int64(c.status))
			r.header.Set("Retry-After", c.retryAfter)
			r.header.Set("Location", other.URL)
			d := b.dispatcher([]string{r.URL})
			b.happen(1)
			if n := b.deliver(d); (n == 1) != c.taken {
				t.Errorf("%d were taken", n)
			}
			if n := b.left(); (n == 1) != (c.again > 0) {
				t.Errorf("%d items are left", n)
			}
			r.status.Store(200)
			b.advance(c.again - 500*time.Millisecond)
			if n := b.deliver(d); n != 0 {
				t.Errorf("it comes again too early")
			}
			b.advance(500 * time.Millisecond)
			if n := b.deliver(d); (n == 1) != (c.again > 0) {
				t.Errorf("%d were taken later", n)
			}
			other.once(t, 0)
		})
	}
}

func TestAReceiverThatDoesNotAnswerIsLeft(t *testing.T) {
	t.Parallel()
	b := begin(t)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or else the server does not see the end
		<-r.Context().Done()
	}))
	defer hangs.Close()
	d := b.dispatcher([]string{hangs.URL}, func(c *webhook.Config) { c.Timeout = 50 * time.Millisecond })
	b.happen(1)
	if n := b.deliver(d); n != 0 || b.left() != 1 {
		t.Errorf("%d were taken, %d are left", n, b.left())
	}
}

// brittle is a table whose writes can fail after they were asked for.
type brittle struct {
	table.Table
	fails atomic.Bool
}

func (t *brittle) Write(ctx context.Context, ops ...table.Op) error {
	if t.fails.Load() {
		return errors.New("the process was killed")
	}
	return t.Table.Write(ctx, ops...)
}

func TestAKillAtAnyMomentLosesNoEvent(t *testing.T) {
	t.Parallel()
	b, r := begin(t), receive(t)
	weak := &brittle{Table: b.table}
	d := b.dispatcher([]string{r.URL}, func(c *webhook.Config) { c.Table = weak })
	b.happen(1)
	weak.fails.Store(true)
	if err := d.Spread(t.Context()); err == nil { // killed before the event is in the queue
		t.Fatal("no error")
	}
	weak.fails.Store(false)
	if err := d.Spread(t.Context()); err != nil {
		t.Fatal(err)
	}
	weak.fails.Store(true)
	if _, err := d.DeliverDue(t.Context()); err == nil { // killed when it was taken and not marked
		t.Fatal("no error")
	}
	r.once(t, 1)
	if n := b.deliver(b.dispatcher([]string{r.URL})); n != 1 { // another process
		t.Errorf("%d were taken again", n)
	}
	for id, n := range r.seen {
		if n != 2 || len(r.seen) != 1 {
			t.Errorf("the event %s came %d times", id, n)
		}
	}
	if n := b.left(); n != 0 {
		t.Errorf("%d items are left", n)
	}
}

func TestFewEventsGoToAnAddressAtOnce(t *testing.T) {
	t.Parallel()
	b := begin(t)
	var now, most int
	var mu sync.Mutex
	four := make(chan struct{})
	var full atomic.Bool
	aside := httptest.NewServer(http.NotFoundHandler())
	defer aside.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		come := now
		mu.Unlock()
		if come == 4 && !full.Swap(true) { // a fifth would come while this one goes to and fro
			for range 20 {
				probe(t, aside.URL)
			}
			close(four)
		}
		<-four
		mu.Lock()
		now--
		mu.Unlock()
	}))
	defer slow.Close()
	b.happen(8)
	d := b.dispatcher([]string{slow.URL})
	if n := b.deliver(d); n != 8 {
		t.Errorf("%d were taken", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if most != 4 {
		t.Errorf("%d came at once, want 4", most)
	}
}

func probe(t *testing.T, address string) {
	resp, err := http.Get(address + "/")
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
}

func TestABacklogIsBounded(t *testing.T) {
	t.Parallel()
	b, good, bad := begin(t), receive(t), receive(t)
	bad.status.Store(500)
	few := func(c *webhook.Config) { c.Backlog = 3 }
	d := b.dispatcher([]string{good.URL, bad.URL}, few)
	for range 5 {
		b.happen(1)
		b.deliver(d)
	}
	good.once(t, 5)
	if n := b.left(); n != 3 {
		t.Errorf("%d are left, want 3", n)
	}
	if n := strings.Count(b.log.String(), "one more is dropped"); n != 2 {
		t.Errorf("%d are told of, want 2", n)
	}
}

func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	b, r := begin(t), receive(t)
	r.status.Store(500)
	closed := httptest.NewServer(nil)
	closed.Close()
	host := strings.TrimPrefix(r.URL, "http://")
	d := b.dispatcher([]string{
		"http://user:hunter2@" + host + "/hook/T0K3N?key=S3CR3T", closed.URL + "/hook/T0K3N?key=S3CR3T", "http://user:hunter2@127.0.0.1:1/T0K3N",
		"https://user:hunter2@" + host + "/hook/T0K3N", // speaks no TLS
	})
	b.happen(1)
	b.deliver(d)
	b.advance(25 * time.Hour)
	b.deliver(d)
	log := b.log.String()
	if strings.Count(log, "not taken yet") != 4 || strings.Count(log, "given up") != 4 || !strings.Contains(log, "webhook=http://"+host) {
		t.Errorf("the log is %s", log)
	}
	for _, word := range []string{"hunter2", "T0K3N", "S3CR3T", strings.TrimPrefix(secret, "whsec_"), "v1,", "alice"} {
		if strings.Contains(log, word) {
			t.Errorf("%s stands in the log %s", word, log)
		}
	}
}

func TestWhatIsNoAddressIsRefusedAndNotRepeated(t *testing.T) {
	t.Parallel()
	b := begin(t)
	secrets, _ := webhook.ParseSecrets(secret)
	for _, address := range []string{"", "example.com/S3CR3T", "ftp://example.com/S3CR3T", "http:///S3CR3T", "http://:80/S3CR3T", "://S3CR3T", "https://example.com/#S3CR3T", "http://a b/S3CR3T"} {
		_, err := webhook.New(webhook.Config{Table: b.table, URLs: []string{address}, Secrets: secrets, Now: b.now})
		if err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: %v", address, err)
		}
	}
	many := make([]string, webhook.MaxURLs+1)
	for i := range many {
		many[i] = "http://example.com/"
	}
	if _, err := webhook.New(webhook.Config{Table: b.table, URLs: many, Secrets: secrets, Now: b.now}); err == nil {
		t.Error("there is no bound")
	}
	if _, err := webhook.New(webhook.Config{Table: b.table, URLs: many[:1], Now: b.now}); err == nil {
		t.Error("it needs no secret")
	}
}

func TestWhatCannotBeReadHoldsUpNothing(t *testing.T) {
	t.Parallel()
	b, r := begin(t), receive(t)
	type other struct {
		ID string `json:"id"`
	}
	for shard := range notify.EventShards {
		if err := b.table.Write(t.Context(), table.Put(table.Key{PK: notify.EventPartition(shard), SK: "0"}, other{"1"})); err != nil {
			t.Fatal(err)
		}
	}
	b.happen(3)
	if n := b.deliver(b.dispatcher([]string{r.URL})); n != 3 || b.left() != 0 {
		t.Errorf("%d were taken, %d items are left", n, b.left())
	}
}

func TestRunDeliversWhatHappensWhileItRuns(t *testing.T) {
	t.Parallel()
	b, r := begin(t), receive(t)
	b.happen(2)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	d := b.dispatcher([]string{r.URL, r.URL + "/2"}, func(c *webhook.Config) { c.Now = time.Now })
	running.Go(func() { d.Run(ctx) })
	wait := func(tries int64) {
		t.Helper()
		for r.tries.Load() < tries {
			select {
			case <-t.Context().Done():
				t.Fatal("nothing comes")
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	wait(4)
	b.happen(1)
	wait(6)
	stop()
	running.Wait()
	if n := b.left(); n != 0 {
		t.Errorf("%d items are left", n)
	}
}
