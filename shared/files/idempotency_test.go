package files_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// claims is a service with an empty table and a clock that the test sets.
type claims struct {
	*testing.T
	*files.Service
	ahead atomic.Int64
}

func newClaims(t *testing.T) *claims {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	expect.NoErr(t, err)
	t.Cleanup(func() { db.Close() })
	w := &claims{T: t}
	w.Service = files.New(files.Config{
		Table: db, Random: rand.Reader,
		Now: func() time.Time { return time.Unix(1_700_000_000, w.ahead.Load()) },
	})
	return w
}

func (w *claims) advance(d time.Duration) { w.ahead.Add(int64(d)) }

// request returns a request by alice, with the given changes.
func request(change ...func(*files.KeyRequest)) files.KeyRequest {
	r := files.KeyRequest{
		By: files.By{User: "alice"}, Key: "k", Fingerprint: files.Fingerprint("POST", "/upload"), HoldFor: time.Minute,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func different(r *files.KeyRequest) { r.Fingerprint = files.Fingerprint("POST", "/uploads") }

// mustClaim claims a free key.
func (w *claims) mustClaim(r files.KeyRequest) *files.Hold {
	w.Helper()
	c, err := w.Hold(w.Context(), r)
	expect.NoErr(w.T, err)
	if result, ok := c.Result(); ok {
		w.Fatalf("the key already has the result %s", result)
	}
	return c
}

// wantConflict fails unless the key is refused. It returns when to retry.
func (w *claims) wantConflict(r files.KeyRequest) time.Duration {
	w.Helper()
	c, err := w.Hold(w.Context(), r)
	if !fault.Is(err, fault.Conflict) {
		w.Fatalf("claiming gave %v, %v, want a Conflict", c, err)
	}
	return fault.Of(err).After
}

// wantResult fails unless the request gets the result of an earlier one.
func (w *claims) wantResult(r files.KeyRequest, want string) {
	w.Helper()
	c, err := w.Hold(w.Context(), r)
	expect.NoErr(w.T, err)
	if got, ok := c.Result(); !ok || got != want {
		w.Fatalf("the result is %q, %v, want %q", got, ok, want)
	}
	c.Release(w.Context()) // a result stays
}

// finish commits the result.
func (w *claims) finish(c *files.Hold, result string) error {
	return c.Lost(w.Table.Write(w.Context(), c.Done(result)...))
}

func (w *claims) mustFinish(c *files.Hold, result string) {
	w.Helper()
	expect.NoErr(w.T, w.finish(c, result))
}

func TestKeyBelongsToOneRequestOfOneUser(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	first := w.mustClaim(request())
	expect.Equal(t, "when a different request may be repeated", w.wantConflict(request(different)), 0)
	w.mustFinish(first, "first")
	expect.Equal(t, "when a different request may be repeated", w.wantConflict(request(different)), 0)
	w.mustClaim(request(func(r *files.KeyRequest) { r.Key = "another" }))
	w.mustClaim(request(func(r *files.KeyRequest) { r.By.User = "bob" }))
	w.mustClaim(request(func(r *files.KeyRequest) { r.By.UserIncarnation = 1 }))
}

func TestOnlyOneOfManyEqualRequestsRuns(t *testing.T) {
	t.Parallel()
	for what, before := range map[string]func(*claims){
		"none came before":             func(*claims) {},
		"the lease of one has expired": func(w *claims) { w.mustClaim(request()); w.advance(time.Hour) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newClaims(t)
			before(w)
			var claimed, refused atomic.Int64
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					c, err := w.Hold(t.Context(), request())
					switch {
					case fault.Is(err, fault.Conflict) && fault.Of(err).After > 0:
						refused.Add(1)
					case err == nil && c != nil:
						claimed.Add(1)
					default:
						t.Errorf("%v, %v", c, err)
					}
				})
			}
			wg.Wait()
			expect.Equal(t, "requests that got the key", claimed.Load(), 1)
			expect.Equal(t, "requests that were told to retry", refused.Load(), 19)
		})
	}
}

func TestFailedRequestCanBeRepeated(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	first := w.mustClaim(request())
	first.Release(t.Context())
	first.Release(t.Context())
	w.mustFinish(w.mustClaim(request(different)), "second")
	first.Release(t.Context()) // it no longer holds the key
	w.wantResult(request(different), "second")
}

func TestReleasedRequestCannotCommit(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	first := w.mustClaim(request())
	first.Release(t.Context())
	expect.Fault(t, "a commit under way", w.finish(first, "first"), fault.Conflict)
	w.mustClaim(request())
}

func TestExpiredLeaseLetsAnotherRequestTakeTheKey(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	first := w.mustClaim(request())
	w.advance(59 * time.Second)
	expect.Equal(t, "when to retry", w.wantConflict(request()), time.Second)
	w.advance(time.Second)
	second := w.mustClaim(request())
	expect.Fault(t, "the commit of the slow first request", w.finish(first, "first"), fault.Conflict)
	first.Release(t.Context())
	w.mustFinish(second, "second")
	w.wantResult(request(), "second")
}

func TestSlowRequestMayFinishAfterItsLeaseIfNoOtherCame(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	first := w.mustClaim(request())
	w.advance(2 * time.Minute)
	w.mustFinish(first, "first")
	w.wantResult(request(), "first")
}

func TestResultIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	w.mustFinish(w.mustClaim(request()), "first")
	w.advance(files.KeyMemory - time.Second)
	for range 3 {
		w.wantResult(request(), "first")
	}
	w.advance(time.Second)
	w.mustFinish(w.mustClaim(request(different)), "second")
	w.wantResult(request(different), "second")
}

func TestRequestWithoutKeyClaimsNothing(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	c, err := w.Hold(t.Context(), request(func(r *files.KeyRequest) { r.Key = "" }))
	if c != nil || err != nil {
		t.Fatalf("%v, %v", c, err)
	}
	if _, ok := c.Result(); ok || c.Done("x") != nil {
		t.Error("a nil claim has a result or an operation")
	}
	c.Release(t.Context())
	cause := &table.ConditionError{}
	if got := c.Lost(cause); got != error(cause) {
		t.Errorf("Lost of a nil claim changed the error to %v", got)
	}
}

func TestOnlyRefusalOfTheClaimItselfMeansTheKeyIsLost(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	c := w.mustClaim(request())
	for _, err := range []error{nil, table.ErrBusy, &table.ConditionError{Op: 1}} {
		if got := c.Lost(err); !errors.Is(got, err) || fault.Of(got) != nil {
			t.Errorf("Lost changed %v to %v", err, got)
		}
	}
}

func TestKeyMustBeVisibleASCII(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		values []string
		good   bool
	}{
		"no key":              {nil, true},
		"a UUID":              {[]string{"8e03978e-40d5-43dd-bc93-6894a57f9324"}, true},
		"a quoted key":        {[]string{`"k"`}, true},
		"255 characters":      {[]string{strings.Repeat("k", 255)}, true},
		"256 characters":      {[]string{strings.Repeat("k", 256)}, false},
		"an empty key":        {[]string{""}, false},
		"two keys":            {[]string{"a", "a"}, false},
		"a space within":      {[]string{"a b"}, false},
		"a control character": {[]string{"a\x7f"}, false},
		"an accented letter":  {[]string{"chiavè"}, false},
		"invalid UTF-8":       {[]string{"\xff"}, false},
	} {
		key, err := files.ReadKey(http.Header{files.KeyHeader: c.values})
		if (err == nil) != c.good || err != nil && !fault.Is(err, fault.Invalid) || err == nil && key != strings.Join(c.values, "") {
			t.Errorf("%s: %q, %v", what, key, err)
		}
	}
}

func TestFingerprintDependsOnEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"1:a"}, {"a1:b"}} {
		f := files.Fingerprint(parts...)
		if before, ok := seen[f]; ok {
			t.Errorf("%q and %q have the same fingerprint", before, parts)
		}
		seen[f] = parts
	}
	// Fingerprints are stored, so a new version must compute the same.
	const want = "e026e5bdc5a8e62fcf616ba3bcb7935a50981d43490c6652ff0ea0024493cc02"
	expect.Equal(t, "the fingerprint", files.Fingerprint("POST", "/upload"), want)
}

func TestLeaseGrowsWithBody(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]time.Duration{
		0: 30 * time.Second, 4 << 20: 62 * time.Second, 1 << 30: time.Hour, 1 << 62: time.Hour, -1: time.Hour,
	} {
		expect.Equal(t, fmt.Sprintf("the lease for %d bytes", bytes), files.HoldTime(bytes), want)
	}
}
