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
	for name, state := range map[string]users.State{
		"alice": users.Active,
		"new":   users.FirstAccess,
		"off":   users.Disabled,
	} {
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
func by(name, password string) identity.Credential {
	return identity.Credential{Kind: identity.Form, Name: name, Password: password, Source: source}
}

// login logs in with a password.
func (c check) login(t *testing.T, name, password string) error {
	t.Helper()
	_, _, err := c.Login(t.Context(), by(name, password))
	return err
}

func TestFailedLoginsLookAlike(t *testing.T) {
	t.Parallel()
	c := begin(t)
	said := map[string]bool{}
	for name, password := range map[string]string{
		"alice": "wrong", "nobody": right, "off": right, "../x": right, "": "", "new": "wrong",
	} {
		err := c.login(t, name, password)
		expect.Fault(t, name, err, fault.Unauthorized)
		said[fault.Of(err).Detail] = true
	}
	expect.Equal(t, "different answers", len(said), 1)
	err := c.login(t, "new", right)
	if !fault.Is(err, fault.Unauthorized) || !strings.Contains(err.Error(), "/auth/first") {
		t.Errorf("a temporary password gives %v", err)
	}
}

func TestBearerIsValidForItsTimeAndUser(t *testing.T) {
	t.Parallel()
	c := begin(t)
	login := func() string {
		_, bearer, err := c.Login(t.Context(), by("ALICE", right))
		must(t, err)
		return bearer
	}
	refused := func(what, bearer string) {
		t.Helper()
		expect.Equal(t, "the scope of a bearer "+what, c.use(t, bearer), "")
	}
	bearer := login()
	refused("with an extra letter", bearer+"A")
	refused("with another secret", "AAAA"+bearer[4:])
	other, err := keys.RandomTokenFor(strings.NewReader(strings.Repeat("x", 32)), "new")
	must(t, err)
	refused("for another user", bearer[:40]+other[40:])
	must(t, c.tokens.Revoke(t.Context(), "x"+bearer))
	c.advance(3599 * time.Second)
	u, err := c.Check(t.Context(), identity.Credential{Kind: identity.Bearer, Bearer: bearer})
	if err != nil || u.Name != "alice" || u.Scope != identity.ScopeAccount {
		t.Errorf("the bearer gives %q with the scope %q, %v", u.Name, u.Scope, err)
	}
	c.advance(time.Second)
	refused("after 3600 s", bearer)
	bearer = login()
	must(t, c.tokens.Revoke(t.Context(), bearer))
	refused("that was revoked", bearer)
	bearer = login()
	must(t, c.users.Disable(t.Context(), "alice"))
	must(t, failure(c.users.Enable(t.Context(), "alice")))
	refused("of a re-enabled user", bearer)
	bearer = login()
	must(t, c.users.Disable(t.Context(), "alice"))
	must(t, c.users.Remove(t.Context(), "alice"))
	refused("of a removed user", bearer)
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
	must(t, c.users.SetPassword(t.Context(), "alice", hash(t, weak, right), users.Active))
	for range 2 {
		must(t, c.login(t, "alice", right))
		renewed := get(t, c.users, "alice").Password
		if !strings.Contains(renewed, "$m=64,t=1,p=1$") {
			t.Errorf("the hash is still %q", renewed)
		}
	}
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
		for i := range 5 {
			expect.Fault(t, name, c.login(t, name, fmt.Sprint("wrong", i)), fault.Unauthorized)
		}
		err := c.login(t, name, right)
		expect.Fault(t, name+" at once", err, fault.TooMany)
		expect.Equal(t, "the wait of "+name, fault.Of(err).After, time.Second)
	}
	c.advance(time.Second)
	must(t, c.login(t, "alice", right))
	for _, name := range []string{"nobody", "off", "new"} {
		expect.Fault(t, name+" after the wait", c.login(t, name, right), fault.Unauthorized)
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
	_, bearer, err := c.Login(t.Context(), by("alice", right))
	must(t, err)
	encode := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	good := map[string]string{
		"a bearer":                          "Bearer " + bearer,
		"a bearer's scheme in another case": "bEARER " + bearer,
		"a bearer after and before a space": "Bearer  " + bearer + " ",
		"a password":                        encode("alice:" + right),
		"a password and a name in capitals": encode("ALICE:" + right),
	}
	bad := map[string]string{
		"a bearer in quotes":                     `Bearer "` + bearer + `"`,
		"a bearer without a scheme":              bearer,
		"a bearer after a tab":                   "Bearer\t" + bearer,
		"a bearer with padding":                  "Bearer " + bearer + "=",
		"a bearer as a token":                    "Token " + bearer,
		"a bearer as a password":                 encode("alice:" + bearer),
		"a name with a space":                    encode("alice :" + right),
		"a password with an extra colon":         encode("alice:" + right + ":"),
		"a password without a name":              encode(":" + right),
		"a name without a password":              encode("alice:"),
		"a name without a colon":                 encode("alice"),
		"a temporary password":                   encode("new:" + right),
		"the password of a user who is disabled": encode("off:" + right),
		"only a scheme":                          "Bearer",
		"only the other scheme":                  "Basic",
		"nothing":                                "",
		"something very long":                    "Bearer " + strings.Repeat("A", 100_000),
		"bytes that are not text":                encode("\xff\xfe:\x00"),
	}
	sources := 0
	show := func(header string) (identity.Identity, error) {
		r := httptest.NewRequest("GET", "/", nil)
		// Each from another source, so that failures do not slow it down.
		sources++
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", sources)
		r.Header.Set("Authorization", header)
		return c.Check(t.Context(), identity.Read(r))
	}
	for what, header := range good {
		u, err := show(header)
		if err != nil || u.Name != "alice" {
			t.Errorf("%s gives %q, %v", what, u.Name, err)
		}
	}
	for what, header := range bad {
		expect.Fault(t, what, failure(show(header)), fault.Unauthorized)
	}
}

func TestFirstAccessTakesATemporaryPasswordAndNoBearer(t *testing.T) {
	t.Parallel()
	c := begin(t)
	u, err := c.User(t.Context(), by("new", right))
	must(t, err)
	expect.Equal(t, "whose temporary password it is", u.Name, "new")
	bearer := identity.Credential{Kind: identity.Bearer, Bearer: "x"}
	expect.Fault(t, "a bearer", failure(c.User(t.Context(), bearer)), fault.Unauthorized)
}
