package account_test

import (
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/users"
)

const (
	fresh  = "a new password"
	change = "&z=a+new+password"
)

// reset is a change of a password: a caller, a change link, and the PIN that it needs.
type reset struct {
	apitest.Caller
	link, pin string
}

// forgot returns the reset of ann, who has a change link and the PIN for it.
func forgot(t *testing.T) reset {
	t.Helper()
	return forget(apitest.Begin(t))
}

func forget(c apitest.Caller) reset {
	c.Helper()
	link := c.Send("GET /auth/forget?u="+c.Name, "").Want(200).LinkURL
	return reset{c, link, sentPIN(c.Server)}
}

// sentPIN returns the PIN in the newest mail.
func sentPIN(s *apitest.Server) string {
	s.Helper()
	pin := regexp.MustCompile(`\b[0-9]{8}\b`).FindString(s.Mail())
	if pin == "" {
		s.Fatal("the mail has no PIN")
	}
	return pin
}

// first returns the reset of new, who has a temporary password.
func first(t *testing.T) reset {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("new", apitest.Password, func(u *users.User) { u.State = users.FirstAccess })
	link := s.Send("POST /auth/first", "", "Authorization", apitest.Basic("new", apitest.Password)).Want(200).LinkURL
	return reset{apitest.Caller{Server: s, Name: "new"}, link, ""}
}

// post uses the link. In the query PIN stands for the right one, and WRONG for another.
func (w reset) post(query string) apitest.Answer {
	w.Helper()
	wrong := strings.NewReplacer("0", "1", "1", "2", "2", "3", "3", "0").Replace(w.pin)
	if wrong == w.pin {
		wrong = "00000000"
	}
	return w.Send("POST "+w.link+strings.NewReplacer("PIN", w.pin, "WRONG", wrong).Replace(query), "")
}

// wantPassword checks that the user can log in with this password only.
func (w reset) wantPassword(password string) {
	w.Helper()
	for p, status := range map[string]int{apitest.Password: 401, fresh: 401, password: 200} {
		login(w.Server, w.Name, p).Want(status)
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
			_, token, _ := strings.Cut(w.link, "k=")
			fill := strings.NewReplacer("TOKEN", token, "PIN", w.pin).Replace
			e := w.Send("POST /auth/change?"+fill(k.query), fill(k.body), "Content-Type", k.kind).Want(200)
			if e.User != "ann" || e.LinkURL != w.link && !strings.Contains(e.LinkURL, "/auth/change?lang=en&k=") {
				t.Errorf("the answer is %+v", e)
			}
			w.wantPassword(fresh)
			w.Ask("GET /download/list", "").Want(401)
			w.post("&p=PIN&z=yet+another+one").Want(401)
			w.wantPassword(fresh)
		})
	}
}

// TestRefusedChangeLeavesThePassword is about what is checked in which order; the tests of users say
// which passwords are refused.
func TestRefusedChangeLeavesThePassword(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		query  string
		status int
		says   string
	}{
		"without a PIN":                         {change, 403, "first access"},
		"with a wrong PIN":                      {"&p=WRONG" + change, 401, "PIN"},
		"with half a PIN":                       {"&p=1234" + change, 401, "PIN"},
		"with a short password":                 {"&p=PIN&z=short", 400, "10 to 128"},
		"with the user's name":                  {"&p=PIN&z=Ann-ann-ann1", 400, "guess"},
		"with a password that is not text":      {"&p=PIN&z=a+new+%FF+password", 400, "text"},
		"with a short password and a wrong PIN": {"&p=WRONG&z=short", 400, "10 to 128"},
		"with another token":                    {"x&p=PIN" + change, 401, "unknown"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := forgot(t)
			w.post(c.query).Want(c.status, c.says)
			w.wantPassword(apitest.Password)
			w.Ask("GET /download/list", "").Want(200)
			// The link still works: there were fewer than five wrong PINs.
			w.post("&p=PIN" + change).Want(200)
		})
	}
}

func TestWithoutPasswordTheLinkIsOnlyChecked(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	for range 8 { // more than the five tries
		w.post("&p=PIN").Want(200)
	}
	w.post("").Want(403)
	w.post("&p=WRONG").Want(401)
	w.wantPassword(apitest.Password)
	w.Send("POST /auth/change", "").Want(400)
	w.Send("POST /auth/change?k=unknown", "").Want(401)
}

func TestChangeLinkTakesFivePINs(t *testing.T) {
	t.Parallel()
	w, wrong := forgot(t), 4
	if w.InStack() { // where a call that the SDK repeats may count a try twice
		wrong = 2
	}
	for range wrong {
		w.post("&p=WRONG" + change).Want(401)
	}
	w.post("&p=PIN" + change).Want(200)
	w.wantPassword(fresh)
}

// TestConcurrentPINsGetFiveTries checks that the right PIN is then refused too.
func TestConcurrentPINsGetFiveTries(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	var tried atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if strings.Contains(w.post("&p=WRONG"+change).Want(401).Header.Get("Ferry-Error"), "PIN is wrong") {
				tried.Add(1)
			}
		})
	}
	wg.Wait()
	expect.Equal(t, "PINs that were checked", tried.Load(), 5)
	w.post("&p=PIN" + change).Want(401)
	w.wantPassword(apitest.Password)
}

func TestChangeLinkWorksOnce(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	var changed atomic.Int64
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if w.post("&p=PIN"+change).Code == 200 {
				changed.Add(1)
			}
		})
	}
	wg.Wait()
	expect.Equal(t, "changes", changed.Load(), 1)
	w.wantPassword(fresh)
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
			w.post("&p=PIN" + change).Want(c.status)
		})
	}
}

func TestChangeLinkDiesWhenTheUserChanges(t *testing.T) {
	t.Parallel()
	for what, changes := range map[string]func(w reset){
		"a newer password": func(w reset) {
			hash, err := w.Data.Ports.Hasher.Hash(w.Context(), "one by the operator")
			expect.NoErr(w.TB, err)
			expect.NoErr(w.TB, w.Users.SetPassword(w.Context(), "ann", hash, users.Active))
		},
		"a disabled user": func(w reset) { expect.NoErr(w.TB, w.Users.Disable(w.Context(), "ann")) },
		"a re-enabled user": func(w reset) {
			expect.NoErr(w.TB, w.Users.Disable(w.Context(), "ann"))
			_, err := w.Users.Enable(w.Context(), "ann")
			expect.NoErr(w.TB, err)
		},
		"another used link": func(w reset) {
			w.Clock.Advance(time.Second) // so that its PIN is in the newest mail
			forget(w.Caller).post("&p=PIN&z=the+newest+of+all").Want(200)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := forgot(t)
			changes(w)
			w.post("&p=PIN" + change).Want(401)
			login(w.Server, "ann", fresh).Want(401)
		})
	}
}

func TestFirstAccessNeedsNoPIN(t *testing.T) {
	t.Parallel()
	w := first(t)
	w.post("").Want(200)
	w.post("&z=short").Want(400)
	w.post(change + "&p=ignored").Want(200)
	w.wantPassword(fresh)
	w.Send("POST /auth/first", "", "Authorization", apitest.Basic("new", fresh)).Want(403)
	w.post("&z=yet+another+one").Want(401)
}

func TestABrowserIsLedToThePageOfAPassword(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	_, token, _ := strings.Cut(w.link, "k=")
	_, query, _ := strings.Cut(w.link, "?")
	to := "../../password?k=" + token + "&lang=en"
	for what, c := range map[string]struct{ accept, request, body, to string }{
		"a program gets none":              {"*/*", "GET /auth/change?" + query, "", ""},
		"without a token there is none":    {browser, "GET /auth/change", "", ""},
		"the link in a mail leads there":   {browser, "GET /auth/change?" + query, "", to},
		"so does a form without a code":    {browser, "POST /auth/change?" + query, "z=a+new+password", to + "&wrong=403"},
		"and a form with a poor password":  {browser, "POST /auth/change", "lang=en&k=" + token + "&p=1&z=short", to + "&wrong=400"},
		"and one with a token of nowhere":  {browser, "POST /auth/change?k=x", "z=a+new+password", "../../password?k=x&wrong=401"},
		"and one that only checks a token": {browser, "POST /auth/change?" + query, "p=" + w.pin, to},
	} {
		a := w.Send(c.request, c.body, "Accept", c.accept, "User-Agent", "Mozilla/5.0", "Content-Type", urlencoded)
		if c.to == "" {
			a.Want(405)
			expect.Equal(t, what, a.Header.Get("Allow"), "POST")
		} else {
			a.Want(303)
			expect.Equal(t, what, a.Header.Get("Location"), c.to)
		}
	}
	w.wantPassword(apitest.Password)
	a := w.Send("POST /auth/change?"+query, "p="+w.pin+"&z=a+new+password", "Accept", browser, "User-Agent", "Mozilla/5.0", "Content-Type", urlencoded).Want(303)
	expect.Equal(t, "the page after a change", a.Header.Get("Location"), "../../login?changed=1&user=ann")
	w.wantPassword(fresh)
}

func TestAnInvitationLeadsToChoosingAPassword(t *testing.T) {
	t.Parallel()
	invited := func(t *testing.T) reset {
		s := apitest.New(t)
		s.AddUser("new", apitest.Password, func(u *users.User) { u.State, u.Lang = users.FirstAccess, "de" })
		u, err := s.Users.Get(t.Context(), "new")
		expect.NoErr(t, err)
		expect.NoErr(t, s.Service.Users().Invite(t.Context(), u, s.Base))
		expect.Equal(t, "mails", s.Deliver(), 1)
		mail := s.Mail()
		link := regexp.MustCompile(regexp.QuoteMeta(s.Base+"/auth/change?lang=de&k=") + "[A-Za-z0-9_-]{43}").FindString(mail)
		if link == "" || !strings.Contains(mail, "Ihr Benutzername ist new.") {
			t.Fatalf("the mail is %s", mail)
		}
		return reset{apitest.Caller{Server: s, Name: "new"}, link, ""}
	}
	w := invited(t)
	w.post(change).Want(200)
	w.wantPassword(fresh)
	w.post("&z=yet+another+one").Want(401)
	for after, status := range map[time.Duration]int{users.InviteLife - time.Minute: 200, users.InviteLife: 401} {
		w = invited(t)
		w.Clock.Advance(after)
		w.post(change).Want(status)
	}
	w = invited(t)
	other := w.Send("POST /auth/first", "", "Authorization", apitest.Basic("new", apitest.Password)).Want(200).LinkURL
	w.Send("POST "+other+change, "").Want(200)
	w.post("&z=yet+another+one").Want(401)
}
