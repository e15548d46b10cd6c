package account_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

const (
	old   = "the old password"
	fresh = "a new password"
)

// reset is a change of a password: a server, a change link, and what it needs.
type reset struct {
	*apitest.Server
	path, pin, bearer string
}

// forgot returns the reset of alice, who has a change link and the PIN for it.
func forgot(t *testing.T) reset {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("alice", old)
	bearer := s.Login("alice", old)
	w := reset{Server: s, bearer: bearer}
	w.path, w.pin = w.forget(t)
	return w
}

// forget asks for a change link and returns its path, and the PIN in the mail.
func (w reset) forget(t *testing.T) (path, pin string) {
	t.Helper()
	e := w.Decode(w.Request("GET", "/auth/forget?u=alice", nil), 200)
	w.Deliver()
	messages, err := w.Service.Inbox.List(t.Context(), 1)
	must(t, err)
	pin = regexp.MustCompile(`\b[0-9]{8}\b`).FindString(messages[0].Text)
	if pin == "" {
		t.Fatal("the mail has no PIN")
	}
	return strings.TrimPrefix(e.LinkURL, w.Base), pin
}

// first returns the reset of alice, who has a temporary password.
func first(t *testing.T) reset {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("alice", old, func(u *auth.User) { u.State = auth.FirstAccess })
	e := s.Decode(s.Request("POST", "/auth/first", nil, "Authorization", apitest.Basic("alice", old)), 200)
	return reset{s, strings.TrimPrefix(e.LinkURL, s.Base), "", ""}
}

// wrong returns a PIN that differs from the right one.
func (w reset) wrong() string {
	if w.pin[0] == '0' {
		return "1" + w.pin[1:]
	}
	return "0" + w.pin[1:]
}

func (w reset) post(query string) *http.Response {
	w.Helper()
	return w.Request("POST", w.path+query, nil)
}

// wantPassword checks that the user can log in with this password only.
func (w reset) wantPassword(t *testing.T, password string) {
	t.Helper()
	for p, status := range map[string]int{old: 401, fresh: 401, password: 200} {
		resp := w.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", p))
		if resp.StatusCode != status {
			t.Errorf("login with %q: status %d, want %d", p, resp.StatusCode, status)
		}
	}
}

func TestForgottenPasswordCanBeChanged(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct{ query, kind, body string }{ // TOKEN and PIN stand for the right ones
		"in the query":                       {"k=TOKEN&p=PIN&z=a+new+password", "", ""},
		"in a form":                          {"k=TOKEN", urlencoded, "p=PIN&z=a+new+password"},
		"all in a form":                      {"", urlencoded, "k=TOKEN&p=PIN&z=a+new+password"},
		"in a form that overrides the query": {"k=TOKEN&p=00000000&z=the+one+in+the+query", urlencoded, "p=PIN&z=a+new+password"},
		"with the specification's type":      {"k=TOKEN&p=PIN&z=a+new+password", "application/json", "{}"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := forgot(t)
			_, token, _ := strings.Cut(w.path, "k=")
			fill := strings.NewReplacer("TOKEN", token, "PIN", w.pin).Replace
			e := w.Decode(w.Request("POST", "/auth/change?"+fill(k.query), strings.NewReader(fill(k.body)), "Content-Type", k.kind), 200)
			if e.User != "alice" || e.LinkURL != w.Base+w.path && !strings.Contains(e.LinkURL, "/auth/change?lang=en&k=") {
				t.Errorf("the answer is %+v", e)
			}
			w.wantPassword(t, fresh)
			w.Decode(w.Request("GET", "/download/list", nil, "Authorization", "Bearer "+w.bearer), 401)
			w.Decode(w.post("&p="+w.pin+"&z=yet+another+one"), 401)
			w.wantPassword(t, fresh)
		})
	}
}

func TestRefusedChangeLeavesThePassword(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, query string // PIN and WRONG stand for a right and a wrong PIN
		status      int
		says        string
	}{
		{"without a PIN", "&z=a+new+password", 403, "first access"},
		{"with a wrong PIN", "&p=WRONG&z=a+new+password", 401, "PIN"},
		{"with half a PIN", "&p=1234&z=a+new+password", 401, "PIN"},
		{"with a short password", "&p=PIN&z=short", 400, "10 to 128"},
		{"with a long password", "&p=PIN&z=" + strings.Repeat("abcd", 33), 400, "10 to 128"},
		{"with a common password", "&p=PIN&z=1234567890", 400, "guess"},
		{"with the user's name", "&p=PIN&z=AliceAlice", 400, "guess"},
		{"with control characters", "&p=PIN&z=a+new+%07+password", 400, "control"},
		{"with a password that is not text", "&p=PIN&z=a+new+%FF+password", 400, "text"},
		{"with a short password and a wrong PIN", "&p=WRONG&z=short", 400, "10 to 128"},
		{"with another token", "x&p=PIN&z=a+new+password", 401, "unknown"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := forgot(t)
			resp := w.post(strings.NewReplacer("PIN", w.pin, "WRONG", w.wrong()).Replace(c.query))
			if says := resp.Header.Get("Ferry-Error"); !strings.Contains(says, c.says) {
				t.Errorf("Ferry-Error is %q, want something about %q", says, c.says)
			}
			w.Decode(resp, c.status)
			w.wantPassword(t, old)
			w.Decode(w.Request("GET", "/download/list", nil, "Authorization", "Bearer "+w.bearer), 200)
			// The link still works: there were fewer than five wrong PINs.
			w.Decode(w.post("&p="+w.pin+"&z=a+new+password"), 200)
		})
	}
}

func TestWithoutPasswordTheLinkIsOnlyChecked(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	for range 8 { // more than the five tries
		w.Decode(w.post("&p="+w.pin), 200)
	}
	w.Decode(w.post(""), 403)
	w.Decode(w.post("&p="+w.wrong()), 401)
	w.wantPassword(t, old)
	w.Decode(w.Request("POST", "/auth/change", nil), 400)
	w.Decode(w.Request("POST", "/auth/change?k=unknown", nil), 401)
}

func TestChangeLinkTakesFivePINs(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	for range 4 {
		w.Decode(w.post("&p="+w.wrong()+"&z=a+new+password"), 401)
	}
	w.Decode(w.post("&p="+w.pin+"&z=a+new+password"), 200)
	w.wantPassword(t, fresh)
}

// TestConcurrentPINsGetFiveTries checks that the right PIN is then refused too.
func TestConcurrentPINsGetFiveTries(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	var tried, refused atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			resp := w.post("&p=" + w.wrong() + "&z=a+new+password")
			if strings.Contains(resp.Header.Get("Ferry-Error"), "PIN is wrong") {
				tried.Add(1)
			} else if resp.StatusCode == 401 {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if tried.Load() != 5 || refused.Load() != 15 {
		t.Errorf("%d PINs were checked and %d refused, want 5 and 15", tried.Load(), refused.Load())
	}
	w.Decode(w.post("&p="+w.pin+"&z=a+new+password"), 401)
	w.wantPassword(t, old)
}

func TestChangeLinkWorksOnce(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	var changed atomic.Int64
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if w.post("&p="+w.pin+"&z=a+new+password").StatusCode == 200 {
				changed.Add(1)
			}
		})
	}
	wg.Wait()
	if changed.Load() != 1 {
		t.Errorf("the password was changed %d times", changed.Load())
	}
	w.wantPassword(t, fresh)
}

func TestChangeLinkExpires(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		begin  func(*testing.T) reset
		after  time.Duration
		status int
	}{
		"a forgotten password in time":  {forgot, 14 * time.Minute, 200},
		"a forgotten password too late": {forgot, 15 * time.Minute, 401},
		"a first access in time":        {first, 59 * time.Minute, 200},
		"a first access too late":       {first, time.Hour, 401},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := c.begin(t)
			w.Clock.Advance(c.after)
			w.Decode(w.post("&p="+w.pin+"&z=a+new+password"), c.status)
		})
	}
}

func TestChangeLinkDiesWhenTheUserChanges(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(t *testing.T, w reset){
		"a newer password": func(t *testing.T, w reset) {
			hash, err := w.Data.Ports.Hasher.Hash(t.Context(), "one by the operator")
			must(t, err)
			must(t, w.Users.SetPassword(t.Context(), "alice", hash, auth.Active))
		},
		"a disabled user": func(t *testing.T, w reset) {
			must(t, w.Users.Disable(t.Context(), "alice"))
		},
		"a re-enabled user": func(t *testing.T, w reset) {
			must(t, w.Users.Disable(t.Context(), "alice"))
			if _, err := w.Users.Enable(t.Context(), "alice"); err != nil {
				t.Fatal(err)
			}
		},
		"another used link": func(t *testing.T, w reset) {
			path, pin := w.forget(t)
			w.Decode(w.Request("POST", path+"&p="+pin+"&z=the+newest+of+all", nil), 200)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := forgot(t)
			change(t, w)
			w.Decode(w.post("&p="+w.pin+"&z=a+new+password"), 401)
			if resp := w.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", fresh)); resp.StatusCode != 401 {
				t.Errorf("login with the new password: status %d", resp.StatusCode)
			}
		})
	}
}

func TestFirstAccessNeedsNoPIN(t *testing.T) {
	t.Parallel()
	w := first(t)
	w.Decode(w.post(""), 200)
	w.Decode(w.post("&z=short"), 400)
	w.Decode(w.post("&z=a+new+password&p=ignored"), 200)
	w.wantPassword(t, fresh)
	w.Decode(w.Request("POST", "/auth/first", nil, "Authorization", apitest.Basic("alice", fresh)), 403)
	w.Decode(w.post("&z=yet+another+one"), 401)
}
