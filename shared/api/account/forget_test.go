package account_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/table"
)

const password = "a password to try"

func startForget(t *testing.T, options ...apitest.Option) *apitest.Server {
	t.Helper()
	s := apitest.New(t, options...)
	s.AddUser("alice", password, func(u *auth.User) { u.Lang = "it" })
	s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	s.AddUser("off", password, func(u *auth.User) { u.State = auth.Disabled })
	s.AddUser("unreached", password, func(u *auth.User) { u.Email = "" })
	return s
}

// wantMails delivers what is due.
func wantMails(s *apitest.Server, want int) {
	s.Helper()
	if n := s.Deliver(); n != want {
		s.Errorf("%d mails were sent, want %d", n, want)
	}
}

func hiding(set *api.Settings, _ *local.ServiceOptions) { set.HideUsers = true }

func TestForgetDependsOnTheUsersState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, query string
		status      int
		user        string
		mails       int
	}{
		{"an active user", "u=alice", 200, "alice", 1},
		{"a name in capitals", "u=ALICE", 200, "alice", 1},
		{"a user in first access", "u=new", 200, "new", 1},
		{"an unknown user", "u=nobody", 401, "", 0},
		{"an impossible name", "u=..%2Fx", 401, "", 0},
		{"a disabled user", "u=off", 403, "", 0},
		{"a user without an address", "u=unreached", 403, "", 0},
		{"no name", "", 400, "", 0},
		{"an empty name", "u=", 400, "", 0},
		{"a malformed query", "u=%zz", 400, "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := startForget(t)
			if strings.Contains(c.query, "%zz") {
				s.InProcess("the gateway parses queries")
			}
			resp := s.Request("GET", "/auth/forget?"+c.query, nil)
			if c.status != 200 && resp.Header.Get("Ferry-Error") == "" {
				t.Error("Ferry-Error is missing")
			}
			if e := s.Decode(resp, c.status); e.User != c.user {
				t.Errorf("the user is %q, want %q", e.User, c.user)
			}
			wantMails(s, c.mails)
		})
	}
}

func TestMailUsesTheUsersLanguageAndLinkTheRequestsLanguage(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	e := s.Decode(s.Request("GET", "/auth/forget?u=alice&lang=fr", nil), 200)
	if !strings.HasPrefix(e.LinkURL, s.Base+"/auth/change?lang=fr&k=") {
		t.Errorf("the link is %q", e.LinkURL)
	}
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 1)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	m := messages[0]
	if m.To != "alice@example.com" || !strings.Contains(m.HTML, `lang="it"`) {
		t.Errorf("the mail to %s is %s", m.To, m.HTML)
	}
	if _, token, _ := strings.Cut(e.LinkURL, "k="); strings.Contains(m.Text+m.HTML, token) {
		t.Error("the mail has the PIN and the link: reading it is enough to change the password")
	}
}

// asking asks for a user's change link from a source, a number of times.
func asking(s *apitest.Server, source, user string, times, status int) (after int) {
	s.Helper()
	for i := range times {
		r := httptest.NewRequestWithContext(s.Context(), "GET", "/v1/auth/forget?u="+user, nil)
		r.RemoteAddr = source + ":1234"
		w := httptest.NewRecorder()
		s.HTTP.Config.Handler.ServeHTTP(w, r)
		if w.Code != status {
			s.Errorf("request %d of %s for %s: status %d (%s), want %d", i, source, user, w.Code, w.Header().Get("Ferry-Error"), status)
		}
		after, _ = strconv.Atoi(w.Header().Get("Retry-After"))
	}
	return after
}

func TestForgetHasBoundsPerUserAndSource(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		options []apitest.Option
		user    string
		mails   int // the most in a day
	}{
		"a user": {nil, "alice", 10}, "a hidden user": {[]apitest.Option{hiding}, "alice", 10}, "a user who does not exist": {[]apitest.Option{hiding}, "nobody", 0},
		"a hidden disabled user": {[]apitest.Option{hiding}, "off", 0}, "a hidden user without an address": {[]apitest.Option{hiding}, "unreached", 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startForget(t, c.options...)
			s.InProcess("it calls from many addresses")
			for i := range 10 {
				source := fmt.Sprint("192.0.2.", i)
				asking(s, source, c.user, 3, 200)
				if after := asking(s, source, c.user, 1, 429); after < 3500 || after > 3600 && i < 9 {
					t.Errorf("Retry-After is %d", after)
				}
			}
			wantMails(s, c.mails)
			if after := asking(s, "192.0.2.99", c.user, 1, 429); after < 86000 || after > 86400 {
				t.Errorf("Retry-After is %d, want almost a day", after)
			}
			asking(s, "192.0.2.99", "new", 3, 200)
			s.Clock.Advance(24*time.Hour + time.Second)
			asking(s, "192.0.2.1", c.user, 3, 200)
			asking(s, "192.0.2.1", c.user, 1, 429)
			wantMails(s, min(c.mails, 3))
		})
	}
}

func TestRequestsThatWereStoredDamagedAreNotCounted(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	s.InProcess("it damages an item")
	damaged := struct {
		Version int64   `json:"version"`
		Times   []int64 `json:"times"`
	}{1, []int64{s.Clock.Now().Unix()}}
	must(t, s.Data.Table.Write(t.Context(), table.Put(table.Key{PK: "user#alice", SK: "forget"}, damaged)))
	asking(s, "192.0.2.1", "alice", 1, 200)
}

// TestForgetHasABoundPerSource asks for names at random and counts what is stored for them.
func TestForgetHasABoundPerSource(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		options []apitest.Option
		status  int
		items   int // for each of the first 20
	}{"names are not hidden": {nil, 401, 0}, "names are hidden": {[]apitest.Option{hiding}, 200, 2}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startForget(t, k.options...)
			s.InProcess("it looks at the table")
			before := len(s.Items())
			for i := range 20 {
				asking(s, "192.0.2.1", fmt.Sprint("nobody", i), 1, k.status)
			}
			s.Calls.Reset()
			for i := range 20 {
				if after := asking(s, "192.0.2.1", fmt.Sprint("nobody", 20+i), 1, 429); after < 3500 || after > 3600 {
					t.Errorf("Retry-After is %d", after)
				}
			}
			if calls := s.Calls.Reset(); calls["table.Write"] != 0 {
				t.Errorf("refusals cost %v", calls)
			}
			if n := len(s.Items()) - before; n != 1+20*k.items {
				t.Errorf("%d items were stored", n)
			}
			asking(s, "192.0.2.1", "alice", 1, 429)
			asking(s, "192.0.2.2", "alice", 1, 200)
			s.Clock.Advance(time.Hour + time.Second)
			asking(s, "192.0.2.1", "alice", 1, 200)
		})
	}
}

func TestForgetIsBoundedOnAFullDisk(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	s.InProcess("it fills the disk")
	s.Calls.Before("table.Write", func() error { return table.ErrFull })
	for i := range 30 {
		asking(s, "192.0.2.1", fmt.Sprint("nobody", i), 1, 507)
	}
	s.Calls.Before("table.Write", nil)
	if calls := s.Calls.Reset(); calls["table.Write"] != 20 {
		t.Errorf("30 requests cost %v", calls)
	}
	s.Clock.Advance(time.Hour + time.Second)
	asking(s, "192.0.2.1", "alice", 1, 200)
}

func TestForgetLimitHoldsForConcurrentRequests(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			resp := s.Request("GET", "/auth/forget?u=alice", nil)
			mu.Lock()
			defer mu.Unlock()
			statuses[resp.StatusCode]++
		})
	}
	wg.Wait()
	for statuses[200] < 3 { // requests that found the user busy may be retried
		resp := s.Request("GET", "/auth/forget?u=alice", nil)
		if statuses[resp.StatusCode]++; resp.StatusCode != 200 {
			break
		}
	}
	if statuses[200] != 3 || statuses[429] == 0 || statuses[200]+statuses[429]+statuses[503] < 24 {
		t.Errorf("the statuses are %v, want 200 three times", statuses)
	}
	wantMails(s, 3)
}

// TestHideUsersMakesAllUsersLookAlike compares everything that a caller without the PIN
// sees on the way to a new password.
func TestHideUsersMakesAllUsersLookAlike(t *testing.T) {
	t.Parallel()
	s := startForget(t, hiding)
	see := func(user string) []string {
		var seen []string
		note := func(resp *http.Response) apitest.Envelope {
			e := s.Decode(resp, resp.StatusCode)
			seen = append(seen, fmt.Sprint(resp.StatusCode, e.Status, e.Description, e.User == user, len(e.LinkURL), resp.Header.Get("Ferry-Error"), resp.Header.Get("Content-Length") != ""))
			return e
		}
		e := note(s.Request("GET", "/auth/forget?u="+user, nil))
		change := strings.TrimPrefix(e.LinkURL, s.Base)
		note(s.Request("POST", change, nil))
		note(s.Request("POST", change+"&z=a+new+password", nil))
		note(s.Request("POST", change+"&p=00000000&z=short", nil))
		for i := range 6 {
			note(s.Request("POST", change+fmt.Sprintf("&p=0000000%d&z=a+new+password", i), nil))
		}
		s.Clock.Advance(time.Minute)
		note(s.Request("POST", strings.TrimPrefix(note(s.Request("GET", "/auth/forget?u="+user, nil)).LinkURL, s.Base), nil))
		return seen
	}
	want := see("alice")
	for _, user := range []string{"nobody", "off", "unreached"} {
		got := see(user)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: answer %d is\n%s, but for alice\n%s", user, i, got[i], want[i])
			}
		}
	}
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 10)
	if err != nil || len(messages) != 2 {
		t.Errorf("%d mails, %v; want the 2 to alice", len(messages), err)
	}
	if e := s.Decode(s.Request("GET", "/auth/forget?u=no/body", nil), 200); e.User != "no/body" {
		t.Errorf("the answer to an impossible name is for %q", e.User)
	}
	if u, err := s.Users.Get(t.Context(), "off"); err != nil || u.State != auth.Disabled {
		t.Errorf("the disabled user is %+v, %v", u, err)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
