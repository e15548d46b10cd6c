package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"

	"ferry/shared/notify"
	"ferry/shared/notify/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// bench is a table with a recorder, a clock that the test moves, and a log.
type bench struct {
	*testing.T
	table table.Table
	clock atomic.Int64
	seq   int64
	log   lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func begin(t *testing.T) *bench {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &bench{T: t, table: db}
	b.clock.Store(time.Now().UnixMilli())
	return b
}

func (b *bench) now() time.Time           { return time.UnixMilli(b.clock.Load()) }
func (b *bench) advance(by time.Duration) { b.clock.Add(by.Milliseconds()) }

// dispatcher is one as after a start of the process.
func (b *bench) dispatcher(urls []string, change ...func(*webhook.Config)) *webhook.Dispatcher {
	b.Helper()
	secrets, err := webhook.ParseSecrets(secret)
	if err != nil {
		b.Fatal(err)
	}
	c := webhook.Config{
		Table: b.table, URLs: urls, Secrets: secrets, Now: b.now, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Jitter: func() float64 { return 0.5 },
	}
	for _, f := range change {
		f(&c)
	}
	d, err := webhook.New(c)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// happen records events.
func (b *bench) happen(n int) {
	b.Helper()
	r := notify.EventRecorder{Source: "https://files.example.com/v1", Now: b.now}
	for range n {
		b.seq++
		if err := b.table.Write(b.Context(), r.Ops("", notify.NewPassword("alice", notify.Forgotten, b.seq))...); err != nil {
			b.Fatal(err)
		}
	}
}

// deliver spreads what has happened and does one pass.
func (b *bench) deliver(d *webhook.Dispatcher) int {
	b.Helper()
	if err := d.Spread(b.Context()); err != nil {
		b.Fatal(err)
	}
	n, err := d.DeliverDue(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// left is how many items the table has.
func (b *bench) left() (n int) {
	b.Helper()
	if err := b.table.Scan(b.Context(), func(table.Item) error { n++; return nil }); err != nil {
		b.Fatal(err)
	}
	return n
}

// receiver is a server that checks signatures and keeps the ids it has seen.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	seen   map[string]int
	status atomic.Int64
	header http.Header
	tries  atomic.Int64
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{seen: map[string]int{}, header: http.Header{}}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.tries.Add(1)
		body, _ := io.ReadAll(req.Body)
		if err := verify(req, body); err != nil {
			t.Error(err)
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

// once checks that so many events were taken, each once.
func (r *receiver) once(t *testing.T, want int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) != want {
		t.Errorf("%d events were taken, want %d", len(r.seen), want)
	}
	for id, n := range r.seen {
		if n != 1 {
			t.Errorf("the event %s was taken %d times", id, n)
		}
	}
}

// verify is what the specification tells receivers to do.
func verify(r *http.Request, body []byte) error {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" {
		return fmt.Errorf("it comes by %s as %s", r.Method, r.Header.Get("Content-Type"))
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	id := r.Header.Get("webhook-id")
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, r.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
		return fmt.Errorf("the signature is %q, want %q", r.Header.Get("webhook-signature"), want)
	}
	if !strings.Contains(string(body), `"id":"`+id+`"`) {
		return fmt.Errorf("the event with the id %s has another in it: %s", id, body)
	}
	return nil
}
