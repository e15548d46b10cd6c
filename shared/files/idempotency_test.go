package files_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// world is a store on a table of its own, with a clock that tests move.
type world struct {
	*testing.T
	*files.Service
	ahead atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w := &world{T: t}
	w.Service = files.New(files.Config{Ports: auth.Ports{
		Table: db, Random: rand.Reader,
		Now: func() time.Time { return time.Unix(1_700_000_000, w.ahead.Load()) },
	}})
	return w
}

func (w *world) advance(d time.Duration) { w.ahead.Add(int64(d)) }

// request is alice's; change may alter it.
func request(change ...func(*files.KeyRequest)) files.KeyRequest {
	r := files.KeyRequest{
		User: auth.User{Name: "alice"}, Key: "k", Fingerprint: files.Fingerprint("POST", "/upload"), Lease: time.Minute,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func other(r *files.KeyRequest) { r.Fingerprint = files.Fingerprint("POST", "/uploads") }

// claim must get the key.
func (w *world) claim(r files.KeyRequest) *files.Claim {
	w.Helper()
	c, err := w.Claim(w.Context(), r)
	if err != nil {
		w.Fatalf("claiming: %v", err)
	}
	if result, ok := c.Result(); ok {
		w.Fatalf("there is a result already: %s", result)
	}
	return c
}

// conflict must not get it. It returns when to ask again.
func (w *world) conflict(r files.KeyRequest) time.Duration {
	w.Helper()
	c, err := w.Claim(w.Context(), r)
	if !envelope.IsFault(err, envelope.Conflict) {
		w.Fatalf("claiming gives %v, %v", c, err)
	}
	return envelope.FaultOf(err).After
}

// result must be there.
func (w *world) result(r files.KeyRequest, want string) {
	w.Helper()
	c, err := w.Claim(w.Context(), r)
	if err != nil {
		w.Fatal(err)
	}
	if got, ok := c.Result(); !ok || got != want {
		w.Fatalf("the result is %q, %v, want %q", got, ok, want)
	}
	c.Release(w.Context()) // a result stays
}

// finish commits.
func (w *world) finish(c *files.Claim, result string) error {
	return c.Lost(w.Table.Write(w.Context(), c.Done(result)...))
}

func (w *world) mustFinish(c *files.Claim, result string) {
	w.Helper()
	if err := w.finish(c, result); err != nil {
		w.Fatal(err)
	}
}

func TestARepeatedRequestGetsTheFirstResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustFinish(w.claim(request()), "first")
	for range 3 {
		w.result(request(), "first")
	}
}

func TestAKeyBelongsToOneRequestOfOneUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.claim(request())
	if after := w.conflict(request(other)); after != 0 {
		t.Errorf("another request is asked to come again after %v", after)
	}
	w.mustFinish(first, "first")
	if after := w.conflict(request(other)); after != 0 {
		t.Errorf("another request is asked to come again after %v", after)
	}
	w.claim(request(func(r *files.KeyRequest) { r.Key = "another" }))
	w.claim(request(func(r *files.KeyRequest) { r.User.Name = "bob" }))
	w.claim(request(func(r *files.KeyRequest) { r.User.Incarnation = 1 }))
}

func TestOneOfManyEqualRequestsIsCarriedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var claimed, refused atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			c, err := w.Claim(t.Context(), request())
			switch {
			case envelope.IsFault(err, envelope.Conflict) && envelope.FaultOf(err).After > 0:
				refused.Add(1)
			case err == nil && c != nil:
				claimed.Add(1)
			default:
				t.Errorf("%v, %v", c, err)
			}
		})
	}
	wg.Wait()
	if claimed.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d were let in and %d told to come again", claimed.Load(), refused.Load())
	}
}

func TestAFailedRequestCanBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.claim(request())
	first.Release(t.Context())
	first.Release(t.Context())
	w.mustFinish(w.claim(request(other)), "second")
	first.Release(t.Context()) // is nobody's any more
	w.result(request(other), "second")
}

func TestARequestThatWasReleasedCannotCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.claim(request())
	first.Release(t.Context())
	if err := w.finish(first, "first"); !envelope.IsFault(err, envelope.Conflict) {
		t.Errorf("a commit under way gives %v", err)
	}
	w.claim(request())
}

func TestALeaseRunsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.claim(request())
	w.advance(59 * time.Second)
	if after := w.conflict(request()); after != time.Second {
		t.Errorf("to come again after %v", after)
	}
	w.advance(time.Second)
	second := w.claim(request())
	if err := w.finish(first, "first"); !envelope.IsFault(err, envelope.Conflict) {
		t.Errorf("the first request, come to life again, gives %v", err)
	}
	first.Release(t.Context())
	w.mustFinish(second, "second")
	w.result(request(), "second")
}

func TestASlowRequestIsWelcomeWhileNobodyElseCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.claim(request())
	w.advance(2 * time.Minute)
	w.mustFinish(first, "first")
	w.result(request(), "first")
}

func TestAResultIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustFinish(w.claim(request()), "first")
	w.advance(files.KeyMemory - time.Second)
	w.result(request(), "first")
	w.advance(time.Second)
	w.mustFinish(w.claim(request(other)), "second")
	w.result(request(other), "second")
}

func TestOneOfManyTakesOverAnExpiredLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim(request())
	w.advance(time.Hour)
	var claimed atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := w.Claim(t.Context(), request()); err == nil {
				claimed.Add(1)
			} else if !envelope.IsFault(err, envelope.Conflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if claimed.Load() != 1 {
		t.Errorf("%d were let in", claimed.Load())
	}
}

func TestWithoutAKeyThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.Claim(t.Context(), request(func(r *files.KeyRequest) { r.Key = "" }))
	if c != nil || err != nil {
		t.Fatalf("%v, %v", c, err)
	}
	if _, ok := c.Result(); ok || c.Done("x") != nil {
		t.Error("a claim of no key does something")
	}
	c.Release(t.Context())
	cause := &table.ConditionError{}
	if got := c.Lost(cause); got != error(cause) {
		t.Errorf("an error became %v", got)
	}
}

func TestOnlyTheClaimsOwnRefusalIsALoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(request())
	for _, err := range []error{nil, table.ErrBusy, &table.ConditionError{Op: 1}} {
		if got := c.Lost(err); !errors.Is(got, err) || envelope.FaultOf(got) != nil {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestAKeyIsVisibleASCII(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		values []string
		good   bool
	}{
		"none":                   {nil, true},
		"a UUID":                 {[]string{"8e03978e-40d5-43dd-bc93-6894a57f9324"}, true},
		"a quoted one":           {[]string{`"k"`}, true},
		"255 characters":         {[]string{strings.Repeat("k", 255)}, true},
		"256 characters":         {[]string{strings.Repeat("k", 256)}, false},
		"an empty one":           {[]string{""}, false},
		"two":                    {[]string{"a", "a"}, false},
		"a space within":         {[]string{"a b"}, false},
		"a control character":    {[]string{"a\x7f"}, false},
		"another script":         {[]string{"chiavè"}, false},
		"bytes that are no text": {[]string{"\xff"}, false},
	} {
		key, err := files.ReadKey(http.Header{files.KeyHeader: c.values})
		if (err == nil) != c.good || err != nil && !envelope.IsFault(err, envelope.Invalid) || err == nil && key != strings.Join(c.values, "") {
			t.Errorf("%s: %q, %v", what, key, err)
		}
	}
}

func TestFingerprintsKeepPartsApart(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"1:a"}, {"a1:b"}} {
		f := files.Fingerprint(parts...)
		if before, ok := seen[f]; ok {
			t.Errorf("%q and %q are taken for the same", before, parts)
		}
		seen[f] = parts
	}
	// Those of requests under way when a new version comes are stored.
	const want = "e026e5bdc5a8e62fcf616ba3bcb7935a50981d43490c6652ff0ea0024493cc02"
	if got := files.Fingerprint("POST", "/upload"); got != want {
		t.Errorf("the fingerprint is %s, want %s", got, want)
	}
}

func TestALeaseGrowsWithTheBody(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]time.Duration{
		0: 30 * time.Second, 4 << 20: 62 * time.Second, 1 << 30: time.Hour, 1 << 62: time.Hour, -1: time.Hour,
	} {
		if got := files.Lease(bytes); got != want {
			t.Errorf("%d bytes have %v, want %v", bytes, got, want)
		}
	}
}
