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

	"ferry/shared/boot/apitest"
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

// request returns a request by alice.
func request() files.KeyRequest {
	return files.KeyRequest{
		By: files.By{User: "alice"}, Key: "k", Fingerprint: files.Fingerprint("POST", "/upload"), HoldFor: time.Minute,
	}
}

func (w *claims) must(c *files.Hold, err error) *files.Hold {
	w.Helper()
	expect.NoErr(w.T, err)
	return c
}

// holds are those of a script's requests, by name.
type holds struct {
	*claims
	of map[string]*files.Hold
}

// do is a step such as: hold NAME BODY KEY USER INCARNATION, of which all but the name may be missing.
func (h holds) do(step string) (err error) {
	var verb, name, more string
	r := request()
	_, _ = fmt.Sscan(step, &verb, &name, &more, &r.Key, &r.By.User, &r.By.UserIncarnation)
	switch verb {
	case "hold":
		r.Fingerprint += more
		h.of[name], err = h.Hold(h.Context(), r)
		if f := fault.Of(err); f != nil {
			return fmt.Errorf("%w, after %s", f, f.After)
		}
		if result, ok := h.of[name].Result(); ok {
			h.of[name].Release(h.Context()) // a result stays
			return fmt.Errorf("the result is %s", result)
		}
	case "done":
		c := h.of[name]
		return c.Lost(h.Table.Write(h.Context(), c.Done(more)...))
	case "release":
		h.of[name].Release(h.Context())
	case "wait":
		span, err := time.ParseDuration(name)
		h.advance(span)
		return err
	}
	return err
}

func TestAKeyIsHeldByOneRequest(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"of one user": `
			hold a
			hold b another > 409 was used for another request, after 0s
			done a first
			hold b another > 409 was used for another request, after 0s
			hold b - another-key
			hold c - k bob
			hold d - k alice 1`,
		"until it fails": `
			hold a
			release a
			release a
			hold b another
			done b second
			release a
			hold c another > the result is second`,
		"which cannot commit once it has released it": `
			hold a
			release a
			done a first > 409 took over
			hold b`,
		"until its lease expires and another takes over": `
			hold a
			wait 59s
			hold b > 409 is still running, after 1s
			wait 1s
			hold b
			done a first > 409 took over
			release a
			done b second
			hold c > the result is second`,
		"also after its lease, if no other came": `
			hold a
			wait 2m
			done a first
			hold b > the result is first`,
		"for a day": `
			hold a
			done a first
			wait 23h59m59s
			hold b > the result is first
			hold b > the result is first
			wait 1s
			hold b another
			done b second
			hold c another > the result is second`,
	}, func(t *testing.T) func(string) error { return holds{newClaims(t), map[string]*files.Hold{}}.do })
}

func TestOnlyOneOfManyEqualRequestsRuns(t *testing.T) {
	t.Parallel()
	for what, before := range map[string]func(*claims){
		"none came before": func(*claims) {},
		"the lease of one has expired": func(w *claims) {
			w.must(w.Hold(w.Context(), request()))
			w.advance(time.Hour)
		},
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

func TestRequestWithoutKeyClaimsNothing(t *testing.T) {
	t.Parallel()
	w := newClaims(t)
	c, err := w.Hold(t.Context(), files.KeyRequest{By: files.By{User: "alice"}})
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
	c := w.must(w.Hold(t.Context(), request()))
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
		if (err == nil) != c.good ||
			err != nil && !fault.Is(err, fault.Invalid) ||
			err == nil && key != strings.Join(c.values, "") {
			t.Errorf("%s: %q, %v", what, key, err)
		}
	}
}

func TestFingerprintDependsOnEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{
		nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"1:a"}, {"a1:b"},
	} {
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
