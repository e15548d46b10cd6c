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

// first returns the reset of new, who has a temporary password, and so needs no PIN.
func first(t *testing.T) reset {
	t.Helper()
	w := beginFirst(t)
	w.link = w.Send("POST /auth/first", "", "Authorization", apitest.Basic("new", apitest.Password)).Want(200).LinkURL
	return w.wantLink()
}

// invited returns the reset of new, who has an invitation.
func invited(t *testing.T) reset {
	t.Helper()
	w := beginFirst(t)
	u, err := w.Users.Get(t.Context(), "new")
	expect.NoErr(t, err)
	expect.NoErr(t, w.Service.Users().Invite(t.Context(), u, w.Base))
	w.link = regexp.MustCompile(`http\S+`).FindString(w.Mail())
	return w.wantLink()
}

func beginFirst(t *testing.T) reset {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("new", apitest.Password, func(u *users.User) { u.State, u.Lang = users.FirstAccess, "de" })
	return reset{Caller: apitest.Caller{Server: s, Name: "new"}, pin: "ignored"}
}

// wantLink checks that the link is in the language of new.
func (w reset) wantLink() reset {
	w.Helper()
	if !strings.HasPrefix(w.link, w.Base+"/auth/change?lang=de&k=") {
		w.Fatalf("the link is %q", w.link)
	}
	return w
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
		"in a form": {kind: urlencoded, body: "k=TOKEN&p=PIN&z=a+new+password"},
		"in a form that overrides the query": {
			query: "k=TOKEN&p=00000000&z=the+one+in+the+query",
			kind:  urlencoded,
			body:  "p=PIN&z=a+new+password",
		},
		"with the specification's type": {
			query: "k=TOKEN&p=PIN&z=a+new+password",
			kind:  "application/json",
			body:  "{}",
		},
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
		"without a PIN":                         {query: change, status: 403, says: "first access"},
		"with a wrong PIN":                      {query: "&p=WRONG" + change, status: 401, says: "PIN"},
		"with the user's name":                  {query: "&p=PIN&z=Ann-ann-ann1", status: 400, says: "guess"},
		"with a short password and a wrong PIN": {query: "&p=WRONG&z=short", status: 400, says: "10 to 128"},
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
	w.Send("POST /auth/first", "", "Authorization", apitest.Basic("ann", apitest.Password)).Want(403)
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
		"a forgotten password in time":  {begin: forgot, after: 14 * time.Minute, status: 200},
		"a forgotten password too late": {begin: forgot, after: 15 * time.Minute, status: 401},
		"a first access in time":        {begin: first, after: 59 * time.Minute, status: 200},
		"a first access too late":       {begin: first, after: time.Hour, status: 401},
		"an invitation in time":         {begin: invited, after: users.InviteLife - time.Minute, status: 200},
		"an invitation too late":        {begin: invited, after: users.InviteLife, status: 401},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := c.begin(t)
			w.Clock.Advance(c.after)
			w.post("&p=PIN" + change).Want(c.status)
			if c.status == 200 {
				w.wantPassword(fresh)
			}
		})
	}
}

func TestChangeLinkDiesWhenTheUserChanges(t *testing.T) {
	t.Parallel()
	first := forgot(t)
	first.Clock.Advance(time.Second) // so that the PIN of the second is in the newest mail
	second := forget(first.Caller)
	second.post("&p=PIN" + change).Want(200)
	first.post("&p=PIN&z=yet+another+one").Want(401)
	first.Clock.Advance(time.Second)
	third := forget(first.Caller)
	expect.NoErr(t, third.Users.Disable(t.Context(), "ann"))
	third.post("&p=PIN&z=yet+another+one").Want(401)
	_, err := third.Users.Enable(t.Context(), "ann")
	expect.NoErr(t, err)
	third.post("&p=PIN&z=yet+another+one").Want(401)
	third.wantPassword(fresh)
}

func TestABrowserIsLedToThePageOfAPassword(t *testing.T) {
	t.Parallel()
	w := forgot(t)
	leads := func(request, body, to string) {
		t.Helper()
		a := w.Send(request, body, "Accept", browser, "User-Agent", "Mozilla/5.0", "Content-Type", urlencoded)
		a.Want(303).WantHeaders("Location", to)
	}
	_, query, _ := strings.Cut(w.link, "?")
	_, token, _ := strings.Cut(query, "k=")
	link, page := "POST /auth/change?"+query, "../../password?k="+token+"&lang=en"
	leads("GET /auth/change?"+query, "", page)
	leads(link, "z=a+new+password", page+"&wrong=403")
	leads("POST /auth/change", "lang=en&k="+token+"&p=1&z=short", page+"&wrong=400")
	leads("POST /auth/change?k=x", "z=a+new+password", "../../password?k=x&wrong=401")
	leads(link, "p="+w.pin, page)
	w.Send("GET /auth/change", "", "Accept", browser, "User-Agent", "Mozilla/5.0").Want(405)
	w.wantPassword(apitest.Password)
	leads(link, "p="+w.pin+"&z=a+new+password", "../../login?changed=1&user=ann")
	w.wantPassword(fresh)
}
