package browser_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
)

const another = "another good password"

// mail delivers the notices and returns the newest mail in the inbox.
func mail(s *apitest.Server) string {
	s.Helper()
	s.Deliver()
	all, err := s.Service.Inbox.List(s.Context(), 1)
	if err != nil || len(all) == 0 {
		s.Fatalf("the inbox has %v, %v", all, err)
	}
	return all[0].Text
}

// linkIn returns the link in a mail.
func linkIn(text string) string { return regexp.MustCompile(`http://\S+`).FindString(text) }

func TestALoginLastsUntilItIsEnded(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		_, b := begin(t, v)
		b.Visit("account")
		b.Seen("login")
		b.Fill("#user", "alice")
		b.Fill("#password", "wrong")
		b.Press("main form button.primary")
		b.WaitFor("[role=alert]")
		b.Seen("login-wrong")
		b.Fill("#password", password)
		b.Press("main form button.primary")
		b.WaitFor("form[action=logout]")
		b.Seen("account")
		b.Press("form[action=logout] button")
		b.Visit("account")
		b.WaitFor("#password")
	})
}

func TestAForgottenPasswordIsReplacedByTheMailsLink(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		b.Visit("login")
		b.Press(`a[href^="forgot"]`)
		b.Fill("#user", "alice")
		b.Seen("forgot")
		b.Press("main form button")
		b.WaitFor("#code")
		b.Seen("password")
		text := mail(s)
		b.Visit(linkIn(text)) // as from another device
		b.WaitFor("#code")
		b.Fill("#code", "00000000")
		b.Fill("#new", another)
		b.Press("main form button.primary")
		b.WaitFor("[role=alert]")
		b.Seen("password-wrong")
		if strings.Contains(b.Address(), "00000000") {
			t.Error("the address has the code")
		}
		b.Fill("#code", regexp.MustCompile(`(?m)^\d{8}$`).FindString(text))
		b.Fill("#new", another)
		b.Press("main form button.primary")
		b.WaitFor("#password")
		b.Seen("login-changed")
		if b.Text("document.querySelector('#user').value") == "" {
			b.Fill("#user", "alice")
		}
		b.Fill("#password", another)
		b.Press("main form button.primary")
		b.Visit("account")
		b.WaitFor("form[action=logout]")
		b.Visit(linkIn(text))
		b.Lacks("#code")
		b.Seen("password-dead")
	})
}

func TestATemporaryPasswordLeadsToChoosingOne(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		s.AddUser("new", "temporary word", func(u *auth.User) { u.State = auth.FirstAccess })
		b.Login("new", "temporary word")
		b.WaitFor("#new")
		b.Seen("password-first")
		b.Fill("#new", "short")
		if !b.Scriptless { // the browser itself refuses it
			b.Click("main form button.primary")
		}
		b.Fill("#new", another)
		b.Press("main form button.primary")
		b.Login("new", another)
		b.Visit("account")
		b.WaitFor("form[action=logout]")
		if strings.Contains(s.Log.String(), "login refused") {
			t.Error("the temporary password counts as a failed login")
		}
	})
}

func TestTokensAndDevicesAreMadeAndEnded(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		other := browsertest.Open(t, s.Root, v)
		other.Login("alice", password)
		b.Login("alice", password)
		b.Visit("account")
		b.Click("#tokens ~ details.fold summary")
		b.Fill("#name", "build <b>server</b>")
		b.Press("#tokens ~ details.fold form button.primary")
		b.WaitFor("#token")
		b.Seen("account-token")
		token := b.Text("document.querySelector('#token').value")
		s.Send("GET /me", "", "Authorization", "Bearer "+token).Want(403)
		s.Send("GET /uploads", "", "Authorization", "Bearer "+token).Want(200)
		if !b.Scriptless {
			b.Click("[data-copy=token]")
			b.Seen("account-token-copied")
		}
		b.Visit("account")
		if strings.Contains(b.Words(), token) {
			t.Error("the token is shown again")
		}
		b.Click("#tokens ~ .rows details.reveal summary")
		b.Press("#tokens ~ .rows details.reveal form button")
		s.Send("GET /uploads", "", "Authorization", "Bearer "+token).Want(401)
		b.Click("#devices ~ .rows details.reveal summary")
		b.Press("#devices ~ .rows details.reveal form button")
		other.Visit("account")
		other.WaitFor("#password")
		b.Visit("account")
		b.WaitFor("form[action=logout]")
	})
}

func TestAPasswordIsChangedAndThisBrowserStaysLoggedIn(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		other := browsertest.Open(t, s.Root, v)
		other.Login("alice", password)
		b.Login("alice", password)
		b.Visit("account")
		b.Click("#change ~ details summary")
		b.Fill("#old", "wrong")
		b.Fill("#new", another)
		b.Press("#change ~ details button.primary")
		b.WaitFor("[role=alert]")
		b.Seen("account-wrong")
		b.Fill("#old", password)
		b.Fill("#new", another)
		b.Press("#change ~ details button.primary")
		b.Seen("account-changed")
		b.Visit("account")
		b.WaitFor("form[action=logout]")
		other.Visit("account")
		other.WaitFor("#password")
		b.Click("#devices ~ details.reveal summary")
		b.Press("#devices ~ details.reveal form button")
		b.Visit("account")
		b.WaitFor("#password")
	})
}

func TestMailsAreStoppedAndResumed(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		s.As("alice").Upload("file=a&m=ann@example.com", "a")
		all := regexp.MustCompile(`http://\S+`).FindAllString(mail(s), -1)
		b.Visit(all[len(all)-1])
		b.WaitText("ann@example.com")
		b.Seen("stop")
		b.Press("main form button")
		b.Seen("stopped")
		b.Press("main form button")
		b.Visit("stop?" + url.Values{"t": {"wrong"}}.Encode())
		b.Seen("stop-mistyped")
	})
}

func TestTheInboxShowsMailsInFrames(t *testing.T) {
	each(t, false, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		s.InProcess("it has an inbox")
		b.Visit("inbox")
		b.Seen("inbox-empty")
		s.As("alice").Upload("file=a&m=ann@example.com&c=%2B393401234567", "a")
		s.Deliver()
		b.Visit("inbox")
		b.WaitText("ann@example.com")
		b.Seen("inbox")
	})
}

func TestAMissingPageSaysSo(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		_, b := begin(t, v)
		b.Visit("nothing")
		b.Seen("missing")
	})
}
