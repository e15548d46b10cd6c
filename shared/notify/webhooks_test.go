package notify_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/table"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hookSender returns a Sender of events to webhooks, as if the process had just started.
func (p *machine) hookSender(tab table.Table, urls ...string) *notify.Sender {
	p.Helper()
	secrets, err := notify.ParseWebhookSecrets(secret)
	must(p, err)
	hooks, err := notify.NewReceivers(urls, secrets)
	must(p, err)
	return p.newSender(notify.Config{Table: tab, Webhooks: hooks})
}

// posting returns a machine, a receiver, and a Sender of events to it.
func posting(t *testing.T) (*machine, *receiver, *notify.Sender) {
	t.Helper()
	p, r := newMachine(t), receive(t)
	return p, r, p.hookSender(p.table, r.URL)
}

// happen records events.
func (p *machine) happen(n int) {
	p.Helper()
	o := notify.Outbox{Source: "https://files.example.com/v1", Listening: true, Now: p.clock.now}
	for range n {
		p.made++
		must(p, p.table.Write(p.Context(), newPassword(p.T, o, "alice", p.made)...))
	}
}

// deliver spreads the recorded events and does one pass.
func (p *machine) deliver(s *notify.Sender) int {
	p.Helper()
	must(p, s.Spread(p.Context()))
	n, _ := p.pass(s)
	return n
}

func (p *machine) wantLeft(want int) {
	p.Helper()
	expect.Equal(p, "items that are left", p.left(), want)
}

// left returns how many items the table has.
func (p *machine) left() (n int) {
	p.Helper()
	must(p, p.table.Scan(p.Context(), func(table.Item) error { n++; return nil }))
	return n
}

// receiver is a server that keeps the ids it has seen.
type receiver struct {
	*testing.T
	*httptest.Server
	mu     sync.Mutex
	seen   map[string]int
	status atomic.Int64
	header http.Header
	tries  atomic.Int64
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{T: t, seen: map[string]int{}, header: http.Header{}}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.tries.Add(1)
		body, _ := io.ReadAll(req.Body)
		if id := req.Header.Get("webhook-id"); !strings.Contains(string(body), `"id":"`+id+`"`) {
			t.Errorf("the event with the id %s has another id in its body: %s", id, body)
		}
		for name, values := range r.header {
			w.Header()[name] = values
		}
		status := int(r.status.Load())
		if status < 300 {
			r.mu.Lock()
			r.seen[req.Header.Get("webhook-id")]++
			r.mu.Unlock()
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// wantOnce checks that this many events were taken, each once.
func (r *receiver) wantOnce(want int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	expect.Equal(r, "events that were taken", len(r.seen), want)
	for id, n := range r.seen {
		expect.Equal(r, "times that the event was taken: "+id, n, 1)
	}
}

func TestEachEventIsDeliveredAndRemoved(t *testing.T) {
	t.Parallel()
	p, r, d := posting(t)
	p.happen(130) // more than a transaction and a pass take
	for p.deliver(d) > 0 {
	}
	r.wantOnce(130)
	p.wantLeft(0)
}

func TestEachWebhookGetsEventsAtItsOwnPace(t *testing.T) {
	t.Parallel()
	p, good, bad := newMachine(t), receive(t), receive(t)
	bad.status.Store(500)
	d := p.hookSender(p.table, bad.URL, good.URL, good.URL+"/other", good.URL)
	p.happen(3)
	expect.Equal(t, "deliveries, three by each that answers", p.deliver(d), 6)
	bad.wantOnce(0)
	bad.status.Store(200)
	expect.Equal(t, "deliveries at once", p.deliver(d), 0)
	p.clock.advance(time.Second)
	expect.Equal(t, "deliveries after a second", p.deliver(d), 3)
	bad.wantOnce(3)
	p.wantLeft(0)
}

func TestEventIsRetriedForADay(t *testing.T) {
	t.Parallel()
	p, r, d := posting(t)
	r.status.Store(503)
	p.happen(1)
	for range 26 * 12 {
		p.deliver(d)
		p.clock.advance(5 * time.Minute)
	}
	if n := r.tries.Load(); n < 25 || n > 50 {
		t.Errorf("it was tried %d times", n)
	}
	p.wantLeft(0)
	if !strings.Contains(p.log.String(), "level=ERROR msg=\"event given up\"") {
		t.Error("nothing is logged")
	}
}

func TestAnswerDecidesWhenAnEventIsRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what       string
		status     int
		retryAfter string
		taken      bool          // at once
		again      time.Duration // 0: never
	}{
		{what: "200", status: 200, taken: true},
		{what: "a redirect", status: 307, again: time.Second},
		{what: "a refusal", status: 400, again: time.Second},
		{what: "gone", status: 410},
		{what: "later", status: 429, retryAfter: "120", again: 120 * time.Second},
		{what: "much later", status: 503, retryAfter: "999999999", again: time.Hour},
		{what: "a date", status: 503, retryAfter: "Fri, 31 Dec 2100 23:59:59 GMT", again: time.Second},
		{what: "a negative wait", status: 503, retryAfter: "-5", again: time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			p, r, d := posting(t)
			other := receive(t)
			r.status.Store(int64(c.status))
			r.header.Set("Retry-After", c.retryAfter)
			r.header.Set("Location", other.URL)
			p.happen(1)
			expect.Equal(t, "it was taken", p.deliver(d) == 1, c.taken)
			expect.Equal(t, "an item is left", p.left() == 1, (c.again > 0))
			r.status.Store(200)
			p.clock.advance(c.again - 500*time.Millisecond)
			expect.Equal(t, "deliveries that came too early", p.deliver(d), 0)
			p.clock.advance(500 * time.Millisecond)
			expect.Equal(t, "it was taken later", p.deliver(d) == 1, (c.again > 0))
			other.wantOnce(0)
		})
	}
}

// brittle is a table where some writes fail.
func brittle(p *machine, fails func(ops []table.Op) bool) *double {
	return &double{Table: p.table, write: func(ops []table.Op) error {
		if fails(ops) {
			return errDown
		}
		return nil
	}}
}

func TestKillAtAnyMomentLosesNoEvent(t *testing.T) {
	t.Parallel()
	p, r := newMachine(t), receive(t)
	var failing func([]table.Op) bool
	weak := brittle(p, func(ops []table.Op) bool { return failing(ops) })
	d := p.hookSender(weak, r.URL)
	p.happen(1)
	for i, fails := range []func(ops []table.Op) bool{
		func([]table.Op) bool { return true }, // killed before the event is in the outbox
		func(ops []table.Op) bool { return strings.HasPrefix(ops[0].Key.PK, "webhook#") && len(ops) == 2 }, // before the claim
		func(ops []table.Op) bool { return len(ops) == 1 },                                                 // after it was taken, before that is stored
	} {
		r.wantOnce(0)
		failing = fails
		err := d.Spread(t.Context())
		d.SendDue(t.Context())
		if err == nil && strings.Count(p.log.String(), tableFailed) != i {
			t.Fatalf("no error at %d", i)
		}
	}
	r.wantOnce(1)
	p.clock.advance(notify.Lease)
	if n := p.deliver(p.hookSender(p.table, r.URL)); n != 1 { // another process
		t.Errorf("%d were taken again", n)
	}
	for id, n := range r.seen {
		if n != 2 || len(r.seen) != 1 {
			t.Errorf("the event %s came %d times", id, n)
		}
	}
	p.wantLeft(0)
}

func TestBacklogIsBounded(t *testing.T) {
	t.Parallel()
	p, good, bad := newMachine(t), receive(t), receive(t)
	bad.status.Store(500)
	d := p.hookSender(p.table, good.URL, bad.URL)
	d.SetBacklog(3)
	for range 5 {
		p.happen(1)
		p.deliver(d)
	}
	good.wantOnce(5)
	p.wantLeft(3)
	expect.Equal(t, "events that are logged as dropped", strings.Count(p.log.String(), "event dropped"), 2)
}

func TestEventCountsInTheBacklogUntilItLeavesTheOutbox(t *testing.T) {
	t.Parallel()
	p, r := newMachine(t), receive(t)
	weak := brittle(p, func(ops []table.Op) bool { return len(ops) == 1 }) // the end of an event
	d := p.hookSender(weak, r.URL)
	d.SetBacklog(1)
	p.happen(1)
	must(t, d.Spread(t.Context()))
	d.SendDue(t.Context())
	r.wantOnce(1)
	weak.write = nil
	p.happen(1)
	if n := p.deliver(d); n != 0 || p.left() != 1 || !strings.Contains(p.log.String(), "event dropped") {
		t.Errorf("%d were taken and %d are left beside the one that was not ended", n, p.left())
	}
	p.clock.advance(notify.Lease)
	p.pass(d)
	p.happen(1)
	expect.Equal(t, "deliveries when there was room again", p.deliver(d), 1)
}

func TestWaitingEventsAreCountedBeforeTheFirstIsDelivered(t *testing.T) {
	t.Parallel()
	p, r := newMachine(t), receive(t)
	p.happen(3)
	before := p.hookSender(p.table, r.URL)
	must(t, before.Spread(t.Context()))
	var lanes sync.WaitGroup
	var once, first sync.Once
	w := &double{Table: p.table}
	d := p.hookSender(w, r.URL) // after a restart
	d.SetBacklog(3)
	looked := make(chan struct{})
	w.query = func(q table.Query) {
		if q.Limit != table.MaxPage { // a lane's, which waits for the count then
			first.Do(func() { close(looked) })
			return
		}
		once.Do(func() {
			lanes.Go(func() { d.SendDue(t.Context()) })
			<-looked
		})
	}
	must(t, d.Spread(t.Context()))
	lanes.Wait()
	p.happen(3)
	p.deliver(d)
	if r.wantOnce(6); p.left() != 0 {
		t.Errorf("%d items are left: %s", p.left(), p.log)
	}
}

func TestReadingEventsDoesNotDelayNotices(t *testing.T) {
	t.Parallel()
	p, r := newMachine(t), receive(t)
	release := make(chan struct{})
	s := p.hookSender(&double{Table: p.table, query: func(q table.Query) {
		if strings.HasPrefix(q.PK, notify.EventPrefix) {
			<-release
		}
	}}, r.URL)
	stop := running(t, s)
	n := p.put(p.linkNotice(1))
	s.Wake()
	p.untilSent(n)
	close(release)
	stop()
}

func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	p, r := newMachine(t), receive(t)
	r.status.Store(500)
	closed := httptest.NewServer(nil)
	closed.Close()
	host := strings.TrimPrefix(r.URL, "http://")
	d := p.hookSender(p.table,
		"http://user:hunter2@"+host+"/hook/T0K3N?key=S3CR3T", closed.URL+"/hook/T0K3N?key=S3CR3T", "http://user:hunter2@127.0.0.1:1/T0K3N",
		"https://user:hunter2@"+host+"/hook/T0K3N", // speaks no TLS
	)
	p.happen(1)
	p.deliver(d)
	p.clock.advance(25 * time.Hour)
	p.deliver(d)
	log := p.log.String()
	if strings.Count(log, "event not sent yet") != 4 ||
		strings.Count(log, "event given up") != 4 ||
		!strings.Contains(log, "webhook=http://"+host) {
		t.Errorf("the log is %s", log)
	}
	for _, word := range []string{"hunter2", "T0K3N", "S3CR3T", strings.TrimPrefix(secret, "whsec_"), "v1,", "alice"} {
		if strings.Contains(log, word) {
			t.Errorf("%s is in the log %s", word, log)
		}
	}
}

func TestUnreadableEventsAreDropped(t *testing.T) {
	t.Parallel()
	p, _, d := posting(t)
	for _, pk := range []string{"event#0", "event#127", "webhook#" + d.Webhooks[0].ID} {
		must(t, p.table.Write(t.Context(), table.Put(table.Key{PK: pk, SK: "0"}, odd{ID: "1"})))
	}
	p.happen(3)
	if n := p.deliver(d); n != 3 || p.left() != 0 {
		t.Errorf("%d were taken, %d items are left", n, p.left())
	}
}

func TestWebhookThatHangsHoldsFourEventsAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	p, good := newMachine(t), receive(t)
	release, tries := make(chan struct{}), atomic.Int64{}
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { tries.Add(1); <-release }))
	defer hangs.Close()
	p.happen(4)
	stop := running(t, p.hookSender(p.table, hangs.URL, good.URL))
	p.happen(8)
	until(t, func() bool { return tries.Load() >= 4 && good.tries.Load() == 12 && p.left() == 12 })
	expect.Equal(t, "events that went to the one that hangs", tries.Load(), 4)
	close(release)
	until(t, func() bool { return p.left() == 0 })
	stop()
	good.wantOnce(12)
}

func TestEventsFromAClockThatWasAheadAreDelivered(t *testing.T) {
	t.Parallel()
	p, r, d := posting(t)
	p.clock.advance(year)
	p.happen(1)
	must(t, d.Spread(t.Context()))
	p.clock.advance(-year)
	p.pass(d)
	r.wantOnce(1)
	p.wantLeft(0)
}

func TestTableThatRefusesClaimsMakesNoLaneRest(t *testing.T) {
	t.Parallel()
	p, r := newMachine(t), receive(t)
	weak := brittle(p, func(ops []table.Op) bool { return len(ops) == 2 }) // a claim
	d := p.hookSender(weak, r.URL)
	p.happen(notify.Batch)
	must(t, d.Spread(t.Context()))
	if next := d.SendDue(t.Context()); next.After(p.clock.now()) || d.Missed() > 0 {
		t.Errorf("the lane looks again at %v, with %d missed", next, d.Missed())
	}
}

func TestAloneAClaimThatFailsLateIsTriedAgainSoon(t *testing.T) {
	expect.Alone(t)
	p, r := newMachine(t), receive(t)
	var claims atomic.Int64
	weak := brittle(p, func(ops []table.Op) bool {
		if len(ops) != 2 || claims.Add(1) > 1 {
			return false
		}
		time.Sleep(200 * time.Millisecond) // until the lane waits for its next look
		return true
	})
	p.happen(1)
	must(t, p.hookSender(p.table, r.URL).Spread(t.Context()))
	d := p.hookSender(weak, r.URL)
	d.Now = time.Now
	defer running(t, d)()
	began := time.Now()
	until(t, func() bool { return r.tries.Load() == 1 })
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the next try came after %s", took)
	}
}
