package identity_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

const (
	right  = "the right password"
	source = "192.0.2.1"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.ahead.Load()))
}
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// check has the providers on a table with the users alice, new and off.
type check struct {
	*identity.Passwords
	*clock
	tokens *identity.Tokens
	users  *users.Service
}

// Check asks the provider for the credential.
func (c check) Check(ctx context.Context, shown identity.Credential) (identity.Identity, error) {
	return identity.Authenticator{
		identity.Basic: c.Passwords, identity.Form: c.Passwords, identity.Bearer: c.tokens,
	}.Check(ctx, shown)
}

func begin(t *testing.T) check {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	c := &clock{}
	h, err := users.NewHasher(users.Params{Memory: 64, Time: 1, Threads: 1}, rand.Reader, c.now)
	must(t, err)
	s := &users.Service{Table: db, Now: c.now}
	for name, state := range map[string]users.State{"alice": users.Active, "new": users.FirstAccess, "off": users.Disabled} {
		must(t, s.Add(t.Context(), users.User{Name: name, State: state, Password: hash(t, h, right)}))
	}
	return check{
		&identity.Passwords{
			Limiter: limit.Limiter{Table: db, Now: c.now, Tries: limit.NewTries()},
			Users:   s, Hasher: h, Random: rand.Reader,
		}, c,
		&identity.Tokens{Table: db, Users: s, Random: rand.Reader, Now: c.now}, s,
	}
}

// by is the credential of a name and a password.
func by(name, password, from string) identity.Credential {
	return identity.Credential{Kind: identity.Form, Name: name, Password: password, Source: from}
}

// try logs in, and returns the kind of the fault and when to retry.
func (c check) try(t *testing.T, name, password, from string) (fault.Kind, time.Duration) {
	t.Helper()
	_, _, err := c.Login(t.Context(), by(name, password, from))
	if err == nil {
		return okay, 0
	}
	f := fault.Of(err)
	if f == nil {
		t.Fatalf("the login fails with %v", err)
	}
	return f.Kind, f.After
}

const okay fault.Kind = -1

// want checks how a login ends.
func (c check) want(t *testing.T, kind fault.Kind, name, password, from string) {
	t.Helper()
	if k, after := c.try(t, name, password, from); k != kind {
		t.Errorf("%s with %q from %s: %v, wait %v, want %v", name, password, from, k, after, kind)
	}
}

// wantWait checks that a login is refused for this long.
func (c check) wantWait(t *testing.T, wait time.Duration, name, password, from string) {
	t.Helper()
	if k, after := c.try(t, name, password, from); k != fault.TooMany || after != wait {
		t.Errorf("%s with %q from %s: %v, wait %v, want %v", name, password, from, k, after, wait)
	}
}

// fail logs in n times, each time with another wrong password.
func (c check) fail(t *testing.T, name string, n int, from string) {
	t.Helper()
	for i := range n {
		c.want(t, fault.Unauthorized, name, fmt.Sprint("wrong", i), from)
	}
}

func TestFailedLoginsLookAlike(t *testing.T) {
	t.Parallel()
	c := begin(t)
	said := map[string]bool{}
	for _, k := range []struct{ name, password string }{{"alice", "wrong"}, {"nobody", right}, {"off", right}, {"off", "wrong"}, {"../x", right}, {"", ""}, {"new", "wrong"}} {
		_, _, err := c.Login(t.Context(), by(k.name, k.password, source))
		if !fault.Is(err, fault.Unauthorized) {
			t.Fatalf("%q with %q: %v", k.name, k.password, err)
		}
		said[fault.Of(err).Detail] = true
	}
	expect.Equal(t, "different answers", len(said), 1)
	if _, _, err := c.Login(t.Context(), by("new", right, source)); !fault.Is(err, fault.Unauthorized) || !strings.Contains(err.Error(), "/auth/first") {
		t.Errorf("a temporary password gives %v", err)
	}
}

func TestBearerIsValidForItsTimeAndUser(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		change func(t *testing.T, c check, bearer string) string // returns the bearer to use
		holds  bool
	}{
		"at once":              {func(_ *testing.T, _ check, b string) string { return b }, true},
		"after 3599 s":         {func(_ *testing.T, c check, b string) string { c.advance(3599 * time.Second); return b }, true},
		"after 3600 s":         {func(_ *testing.T, c check, b string) string { c.advance(3600 * time.Second); return b }, false},
		"with an extra letter": {func(_ *testing.T, _ check, b string) string { return b + "A" }, false},
		"with another secret":  {func(_ *testing.T, _ check, b string) string { return "AAAA" + b[4:] }, false},
		"for another user": {func(t *testing.T, _ check, b string) string {
			other, err := keys.RandomTokenFor(strings.NewReader(strings.Repeat("x", 32)), "new")
			must(t, err)
			return b[:40] + other[40:]
		}, false},
		"revoked":                   {func(t *testing.T, c check, b string) string { must(t, c.tokens.Revoke(t.Context(), b)); return b }, false},
		"after another was revoked": {func(t *testing.T, c check, b string) string { must(t, c.tokens.Revoke(t.Context(), "x"+b)); return b }, true},
		"after a new password": {func(t *testing.T, c check, b string) string {
			must(t, c.users.SetPassword(t.Context(), "alice", "x", users.Active))
			return b
		}, false},
		"of a disabled user": {func(t *testing.T, c check, b string) string { must(t, c.users.Disable(t.Context(), "alice")); return b }, false},
		"of a re-enabled user": {func(t *testing.T, c check, b string) string {
			must(t, c.users.Disable(t.Context(), "alice"))
			_, err := c.users.Enable(t.Context(), "alice")
			must(t, err)
			return b
		}, false},
		"of a removed user": {func(t *testing.T, c check, b string) string {
			must(t, c.users.Disable(t.Context(), "alice"))
			must(t, c.users.Remove(t.Context(), "alice"))
			return b
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			_, bearer, err := c.Login(t.Context(), by("ALICE", right, source))
			must(t, err)
			u, err := c.Check(t.Context(), identity.Credential{Kind: identity.Bearer, Bearer: k.change(t, c, bearer)})
			if k.holds && (err != nil || u.Name != "alice") || !k.holds && !fault.Is(err, fault.Unauthorized) {
				t.Errorf("the bearer gives %q, %v", u.Name, err)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func failure[T any](_ T, err error) error { return err }

func TestLoginRenewsAWeakerHash(t *testing.T) {
	t.Parallel()
	c := begin(t)
	weak, err := users.NewHasher(users.Params{Memory: 32, Time: 1, Threads: 1}, rand.Reader, c.now)
	must(t, err)
	for what, login := range map[string]func() error{
		"a page": func() error { return failure(c.LoginFirst(t.Context(), by("alice", right, source))) },
		"a program": func() error {
			_, bearer, err := c.Login(t.Context(), by("alice", right, source))
			must(t, err)
			return failure(c.Check(t.Context(), identity.Credential{Kind: identity.Bearer, Bearer: bearer}))
		},
	} {
		must(t, c.users.SetPassword(t.Context(), "alice", hash(t, weak, right), users.Active))
		must(t, login())
		u, err := c.users.Get(t.Context(), "alice")
		must(t, err)
		if !strings.Contains(u.Password, "$m=64,t=1,p=1$") {
			t.Errorf("%s: the hash is still %q", what, u.Password)
		}
	}
	c.want(t, okay, "alice", right, source) // once more
}

func hash(t *testing.T, h *users.Hasher, password string) string {
	t.Helper()
	s, err := h.Hash(t.Context(), password)
	must(t, err)
	return s
}

func get(t *testing.T, s *users.Service, name string) users.User {
	t.Helper()
	u, err := s.Get(t.Context(), name)
	must(t, err)
	return u
}

// TestWaitDoesNotRevealWhoExists checks that every kind of name must wait alike.
func TestWaitDoesNotRevealWhoExists(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, name := range []string{"alice", "ALICE@x", "nobody", "off", "new"} {
		c.fail(t, name, 5, source)
		c.wantWait(t, time.Second, name, right, source)
	}
	c.advance(time.Second)
	for name, want := range map[string]fault.Kind{"alice": okay, "nobody": fault.Unauthorized, "off": fault.Unauthorized, "new": fault.Unauthorized} {
		c.want(t, want, name, right, source) // after the wait
	}
}

func TestSourceIsAnAddressOrAnIPv6Network(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::", "2001:db8:1:2::7": "2001:db8:1:2::", "": "unknown", "@": "unknown",
	} {
		if got := identity.Source(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%q gives %q, want %q", addr, got, want)
		}
	}
}

func TestCredentialIsReadFromTheHeader(t *testing.T) {
	t.Parallel()
	c := begin(t)
	_, bearer, err := c.Login(t.Context(), by("alice", right, source))
	must(t, err)
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	good := encode("alice:" + right)
	sources := 0
	for what, k := range map[string]struct {
		header string
		ok     bool
	}{
		"a bearer":                               {"Bearer " + bearer, true},
		"a bearer's scheme in lower case":        {"bearer " + bearer, true},
		"a bearer's scheme in upper case":        {"BEARER " + bearer, true},
		"a bearer after two spaces":              {"Bearer  " + bearer, true},
		"a bearer with a trailing space":         {"Bearer " + bearer + " ", true},
		"a bearer in quotes":                     {`Bearer "` + bearer + `"`, false},
		"a bearer without a scheme":              {bearer, false},
		"a bearer without a space":               {"Bearer" + bearer, false},
		"a bearer after a tab":                   {"Bearer\t" + bearer, false},
		"two bearers":                            {"Bearer " + bearer + "," + bearer, false},
		"a bearer with padding":                  {"Bearer " + bearer + "=", false},
		"a bearer as a token":                    {"Token " + bearer, false},
		"a bearer as a password":                 {"Basic " + encode("alice:"+bearer), false},
		"a password":                             {"Basic " + good, true},
		"a password's scheme in lower case":      {"basic " + good, true},
		"a name in upper case":                   {"Basic " + encode("ALICE:"+right), true},
		"a name with a space":                    {"Basic " + encode("alice :"+right), false},
		"a password with an extra colon":         {"Basic " + encode("alice:"+right+":"), false},
		"a password without a name":              {"Basic " + encode(":"+right), false},
		"a name without a password":              {"Basic " + encode("alice:"), false},
		"a name without a colon":                 {"Basic " + encode("alice"), false},
		"a password that is not encoded":         {"Basic alice:" + right, false},
		"a password as a bearer":                 {"Bearer " + good, false},
		"a temporary password":                   {"Basic " + encode("new:"+right), false},
		"the password of a user who is disabled": {"Basic " + encode("off:"+right), false},
		"only a scheme":                          {"Bearer", false},
		"a scheme and a space":                   {"Bearer ", false},
		"only the other scheme":                  {"Basic", false},
		"another scheme":                         {`Digest username="alice"`, false},
		"nothing":                                {"", false},
		"a space":                                {" ", false},
		"something very long":                    {"Bearer " + strings.Repeat("A", 100_000), false},
		"a long name":                            {"Basic " + encode(strings.Repeat("a", 100_000)+":x"), false},
		"bytes that are not text":                {"Basic " + encode("\xff\xfe:\x00"), false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		// Each from another source, so that failures do not slow it down.
		sources++
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", sources)
		r.Header.Set("Authorization", k.header)
		u, err := c.Check(t.Context(), identity.Read(r))
		if k.ok && (err != nil || u.Name != "alice") || !k.ok && !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s gives %q, %v", what, u.Name, err)
		}
	}
}

func TestFirstAccessTakesATemporaryPasswordAndNoBearer(t *testing.T) {
	t.Parallel()
	c := begin(t)
	_, bearer, err := c.Login(t.Context(), by("alice", right, source))
	must(t, err)
	r := httptest.NewRequest("POST", "/", nil)
	r.SetBasicAuth("new", right)
	if u, err := c.User(t.Context(), identity.Read(r)); err != nil || u.Name != "new" {
		t.Errorf("a temporary password gives %q, %v", u.Name, err)
	}
	expect.Fault(t, "elsewhere", failure(c.Check(t.Context(), identity.Read(r))), fault.Unauthorized)
	r.Header.Set("Authorization", "Bearer "+bearer)
	expect.Fault(t, "a bearer", failure(c.User(t.Context(), identity.Read(r))), fault.Unauthorized)
}
