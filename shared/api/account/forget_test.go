package account_test

import (
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/keys"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

func startForget(t *testing.T, options ...apitest.Option) *apitest.Server {
	t.Helper()
	s := apitest.New(t, options...)
	for name, change := range map[string]func(*users.User){
		"alice": func(u *users.User) { u.Lang = "it" }, "new": func(u *users.User) { u.State = users.FirstAccess },
		"off": func(u *users.User) { u.State = users.Disabled }, "unreached": func(u *users.User) { u.Email = "" },
	} {
		s.AddUser(name, apitest.Password, change)
	}
	return s
}

func hiding(set *service.Settings, _ *local.ServiceOptions) { set.HideUsers = true }

func TestForgetDependsOnTheUsersState(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	for name, want := range map[string]string{
		"ALICE": "200 alice", "new": "200 new", "nobody": "401 ", "..%2Fx": "401 ", "off": "403 ", "unreached": "403 ", "": "400 ",
	} {
		a := s.Send("GET /auth/forget?u="+name, "")
		expect.Equal(t, "the answer to "+name, fmt.Sprint(a.Code, " ", a.User), want)
		expect.Equal(t, "mails for "+name, s.Deliver(), map[bool]int{true: 1}[a.Code == 200])
	}
}

func TestMailUsesTheUsersLanguageAndLinkTheRequestsLanguage(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	link := s.Send("GET /auth/forget?u=alice&lang=fr", "").Want(200).LinkURL
	if !strings.HasPrefix(link, s.Base+"/auth/change?lang=fr&k=") {
		t.Errorf("the link is %q", link)
	}
	_, token, _ := strings.Cut(link, "k=")
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 1)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	m := messages[0]
	if m.To != "alice@example.com" || !strings.Contains(m.HTML, `lang="it"`) {
		t.Errorf("the mail to %s is %s", m.To, m.HTML)
	}
	if want := keys.ChangeLink(s.Base, "it", token); !strings.Contains(m.Text, "\n"+want+"\n") {
		t.Errorf("the mail does not lead to %s: %s", want, m.Text)
	}
}

// asking asks for a user's change link from a source, a number of times.
func asking(s *apitest.Server, source, user string, times, status int) (after int) {
	s.Helper()
	s.InProcess("it calls from many addresses")
	for i := range times {
		r := httptest.NewRequestWithContext(s.Context(), "GET", "/v1/auth/forget?u="+user, nil)
		r.RemoteAddr = source + ":1234"
		w := httptest.NewRecorder()
		s.HTTP.Config.Handler.ServeHTTP(w, r)
		if w.Code != status {
			s.Errorf("request %d of %s for %s: status %d (%s), want %d",
				i, source, user, w.Code, w.Header().Get("Ferry-Error"), status)
		}
		after, _ = strconv.Atoi(w.Header().Get("Retry-After"))
	}
	return after
}

// refused is asking once too often, with about that many seconds to wait.
func refused(s *apitest.Server, source, user string, wait int) {
	s.Helper()
	if after := asking(s, source, user, 1, 429); after < wait-wait/36 || after > wait {
		s.Errorf("%s is told to wait for %d s, want %d", source, after, wait)
	}
}

const hour, day = 3600, 24 * 3600

func TestForgetHasBoundsPerUserAndSource(t *testing.T) {
	t.Parallel()
	hidden := []apitest.Option{hiding}
	for what, c := range map[string]struct {
		options []apitest.Option
		user    string
		mails   int // the most in a day
	}{
		"a user": {
			user:  "alice",
			mails: 10,
		}, "a user who does not exist": {
			options: hidden,
			user:    "nobody",
		}, "a hidden disabled user": {options: hidden, user: "off"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startForget(t, c.options...)
			for i := range 10 {
				source := fmt.Sprint("192.0.2.", i)
				asking(s, source, c.user, 3, 200)
				refused(s, source, c.user, map[bool]int{true: day, false: hour}[i == 9])
			}
			expect.Equal(t, "mails", s.Deliver(), c.mails)
			refused(s, "192.0.2.99", c.user, day)
			asking(s, "192.0.2.99", "new", 3, 200)
			s.Clock.Advance(24*time.Hour + time.Second)
			asking(s, "192.0.2.1", c.user, 3, 200)
			asking(s, "192.0.2.1", c.user, 1, 429)
			expect.Equal(t, "mails on the next day", s.Deliver(), min(c.mails, 3))
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
	expect.NoErr(t, s.Data.Table.Write(t.Context(), table.Put(table.Key{PK: "user#alice", SK: "forget"}, damaged)))
	asking(s, "192.0.2.1", "alice", 1, 200)
}

// TestForgetHasABoundPerSource asks for names at random and counts what is stored for them.
func TestForgetHasABoundPerSource(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		options []apitest.Option
		status  int
		items   int // for each of the first 20
	}{
		"names are not hidden": {status: 401},
		"names are hidden":     {options: []apitest.Option{hiding}, status: 200, items: 2},
	} {
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
				refused(s, "192.0.2.1", fmt.Sprint("nobody", 20+i), hour)
			}
			expect.Equal(t, "writes for refusals", s.Calls.Reset()["table.Write"], 0)
			expect.Equal(t, "items", len(s.Items())-before, 1+20*k.items)
			refused(s, "192.0.2.1", "alice", hour)
			asking(s, "192.0.2.2", "alice", 1, 200)
			s.Clock.Advance(time.Hour + time.Second)
			asking(s, "192.0.2.1", "alice", 1, 200)
		})
	}
}

func TestForgetIsBoundedOnAFullDisk(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	s.Calls.Before("table.Write", func() error { return table.ErrFull })
	for i := range 30 {
		asking(s, "192.0.2.1", fmt.Sprint("nobody", i), 1, 507)
	}
	s.Calls.Before("table.Write", nil)
	expect.Equal(t, "writes for 30 requests", s.Calls.Reset()["table.Write"], 20)
	s.Clock.Advance(time.Hour + time.Second)
	asking(s, "192.0.2.1", "alice", 1, 200)
}

func TestForgetLimitHoldsForConcurrentRequests(t *testing.T) {
	t.Parallel()
	s := startForget(t)
	var mu sync.Mutex
	statuses := map[int]int{}
	ask := func() int {
		code := s.Send("GET /auth/forget?u=alice", "").Code
		mu.Lock()
		defer mu.Unlock()
		statuses[code]++
		return code
	}
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() { ask() })
	}
	wg.Wait()
	for (statuses[200] < 3 || statuses[429] == 0) && ask() == 200 { // requests that found the user busy may be retried
	}
	if statuses[200] != 3 || statuses[429] == 0 || statuses[200]+statuses[429]+statuses[503] < 24 {
		t.Errorf("the statuses are %v, want 200 three times", statuses)
	}
	expect.Equal(t, "mails", s.Deliver(), 3)
}

// TestHideUsersMakesAllUsersLookAlike compares everything that a caller without the PIN
// sees on the way to a new password.
func TestHideUsersMakesAllUsersLookAlike(t *testing.T) {
	t.Parallel()
	s := startForget(t, hiding)
	see := func(user string) (seen []string) {
		note := func(request string) (link string) {
			a := s.Send(request, "")
			seen = append(
				seen,
				fmt.Sprint(
					a.Code,
					a.Status,
					a.Description,
					a.User == user,
					len(a.LinkURL),
					a.Header.Get("Ferry-Error"),
					a.Header.Get("Content-Length") != "",
				),
			)
			return a.LinkURL
		}
		change := "POST " + note("GET /auth/forget?u="+user)
		for _, with := range []string{"", "&z=a+new+password", "&p=00000000&z=short"} {
			note(change + with)
		}
		for i := range 6 {
			note(change + fmt.Sprintf("&p=0000000%d&z=a+new+password", i))
		}
		s.Clock.Advance(time.Minute)
		note("POST " + note("GET /auth/forget?u="+user))
		return seen
	}
	want := see("alice")
	for _, user := range []string{"nobody", "off", "unreached"} {
		expect.Equal(t, "the answers to "+user, see(user), want)
	}
	expect.Equal(t, "mails, which go to alice", s.Deliver(), 2)
	expect.Equal(t, "an impossible name", s.Send("GET /auth/forget?u=no/body", "").Want(200).User, "no/body")
	if u, err := s.Users.Get(t.Context(), "off"); err != nil || u.State != users.Disabled {
		t.Errorf("the disabled user is %+v, %v", u, err)
	}
}
