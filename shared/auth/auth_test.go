package auth_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/fault"
)

const (
	right  = "the right password"
	source = "192.0.2.1"
)

// check is an Authenticator on a table with the users alice, new and off.
type check struct {
	*auth.Authenticator
	*clock
	users *auth.Users
}

func begin(t *testing.T) check {
	t.Helper()
	db := open(t)
	h, c, _ := hasher(t)
	s := auth.NewUsers(db, c.now)
	for name, state := range map[string]auth.UserState{"alice": auth.Active, "new": auth.FirstAccess, "off": auth.Disabled} {
		must(t, s.Add(t.Context(), auth.User{Name: name, State: state, Password: hash(t, h, right)}))
	}
	return check{auth.New(auth.Ports{Table: db, Hasher: h, Throttle: auth.NewThrottle(), Random: rand.Reader, Now: c.now}), c, s}
}

// by is the credential of a name and a password.
func by(name, password, from string) auth.Credential {
	return auth.Credential{Kind: "password", Name: name, Password: password, Source: from}
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

// fail logs in n times, each time with another wrong password.
func (c check) fail(t *testing.T, name string, n int, from string) {
	t.Helper()
	for i := range n {
		if k, _ := c.try(t, name, fmt.Sprint("wrong", i), from); k != fault.Unauthorized {
			t.Fatalf("wrong password %d gives %v", i, k)
		}
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
	if len(said) != 1 {
		t.Errorf("the answers differ: %v", said)
	}
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
			other, err := auth.RandomTokenFor(strings.NewReader(strings.Repeat("x", 32)), "new")
			must(t, err)
			return b[:40] + other[40:]
		}, false},
		"revoked":                   {func(t *testing.T, c check, b string) string { must(t, c.Revoke(t.Context(), b)); return b }, false},
		"after another was revoked": {func(t *testing.T, c check, b string) string { must(t, c.Revoke(t.Context(), "x"+b)); return b }, true},
		"after a new password": {func(t *testing.T, c check, b string) string {
			must(t, c.users.SetPassword(t.Context(), "alice", "x", auth.Active))
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
			u, err := c.Check(t.Context(), auth.Credential{Kind: "bearer", Bearer: k.change(t, c, bearer)})
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
	weak, err := auth.NewHasher(auth.Params{Memory: 32, Time: 1, Threads: 1}, rand.Reader, c.now)
	must(t, err)
	must(t, c.users.SetPassword(t.Context(), "alice", hash(t, weak, right), auth.Active))
	_, bearer, err := c.Login(t.Context(), by("alice", right, source))
	must(t, err)
	u, err := c.users.Get(t.Context(), "alice")
	must(t, err)
	if !strings.Contains(u.Password, "$m=64,t=1,p=1$") {
		t.Errorf("the hash is still %q", u.Password)
	}
	if _, err := c.Check(t.Context(), auth.Credential{Kind: "bearer", Bearer: bearer}); err != nil {
		t.Errorf("renewing the hash ended the bearer: %v", err)
	}
	if k, _ := c.try(t, "alice", right, source); k != okay {
		t.Errorf("the next login fails with %v", k)
	}
}

func TestSourceIsAnAddressOrAnIPv6Network(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::", "2001:db8:1:2::7": "2001:db8:1:2::", "": "unknown", "@": "unknown",
	} {
		if got := auth.Source(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%q gives %q, want %q", addr, got, want)
		}
	}
}
