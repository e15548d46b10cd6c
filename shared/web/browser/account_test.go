package browser_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
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
	each(t, true, func(t *testing.T, v view) {
		_, b := begin(t, v)
		b.visit("account")
		b.seen("login")
		b.fill("#user", "alice")
		b.fill("#password", "wrong")
		b.press("main form button.primary")
		b.waitFor("[role=alert]")
		b.seen("login-wrong")
		b.fill("#password", password)
		b.press("main form button.primary")
		b.waitFor("form[action=logout]")
		b.seen("account")
		b.press("form[action=logout] button")
		b.visit("account")
		b.waitFor("#password")
	})
}

func TestAForgottenPasswordIsReplacedByTheMailsLink(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		s, b := begin(t, v)
		b.visit("login")
		b.press(`a[href^="forgot"]`)
		b.fill("#user", "alice")
		b.seen("forgot")
		b.press("main form button")
		b.waitFor("#code")
		b.seen("password")
		text := mail(s)
		b.visit(linkIn(text)) // as from another device
		b.waitFor("#code")
		b.fill("#code", "00000000")
		b.fill("#new", another)
		b.press("main form button.primary")
		b.waitFor("[role=alert]")
		b.seen("password-wrong")
		b.fill("#code", regexp.MustCompile(`(?m)^\d{8}$`).FindString(text))
		b.fill("#new", another)
		b.press("main form button.primary")
		b.waitFor("#password")
		b.seen("login-changed")
		if get[string](b, "document.querySelector('#user').value") == "" {
			b.fill("#user", "alice")
		}
		b.fill("#password", another)
		b.press("main form button.primary")
		b.visit("account")
		b.waitFor("form[action=logout]")
		b.visit(linkIn(text))
		b.lacks("#code")
		b.seen("password-dead")
		if strings.Contains(get[string](b, "location.search"), "00000000") {
			t.Error("the address has the code")
		}
	})
}

func TestATemporaryPasswordLeadsToChoosingOne(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		s, b := begin(t, v)
		s.AddUser("new", "temporary word", func(u *auth.User) { u.State = auth.FirstAccess })
		b.login("new", "temporary word")
		b.waitFor("#new")
		b.seen("password-first")
		b.fill("#new", "short")
		if !b.scriptless { // the browser itself refuses it
			b.click("main form button.primary")
		}
		b.fill("#new", another)
		b.press("main form button.primary")
		b.login("new", another)
		b.visit("account")
		b.waitFor("form[action=logout]")
		if strings.Contains(s.Log.String(), "login refused") {
			t.Error("the temporary password counts as a failed login")
		}
	})
}

func TestTokensAndDevicesAreMadeAndEnded(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		s, b := begin(t, v)
		other := open(t, s.Root, v)
		other.login("alice", password)
		b.login("alice", password)
		b.visit("account")
		b.click("#tokens ~ details.fold summary")
		b.fill("#name", "build <b>server</b>")
		b.press("#tokens ~ details.fold form button.primary")
		b.waitFor("#token")
		b.seen("account-token")
		token := get[string](b, "document.querySelector('#token').value")
		s.Send("GET /me", "", "Authorization", "Bearer "+token).Want(403)
		s.Send("GET /uploads", "", "Authorization", "Bearer "+token).Want(200)
		if !b.scriptless {
			b.click("[data-copy=token]")
			b.seen("account-token-copied")
		}
		b.visit("account")
		if strings.Contains(b.words(), token) {
			t.Error("the token is shown again")
		}
		b.click("#tokens ~ .rows details.reveal summary")
		b.press("#tokens ~ .rows details.reveal form button")
		s.Send("GET /uploads", "", "Authorization", "Bearer "+token).Want(401)
		b.click("#devices ~ .rows details.reveal summary")
		b.press("#devices ~ .rows details.reveal form button")
		other.visit("account")
		other.waitFor("#password")
		b.visit("account")
		b.waitFor("form[action=logout]")
	})
}

func TestAPasswordIsChangedAndThisBrowserStaysLoggedIn(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		s, b := begin(t, v)
		other := open(t, s.Root, v)
		other.login("alice", password)
		b.login("alice", password)
		b.visit("account")
		b.click("#change ~ details summary")
		b.fill("#old", "wrong")
		b.fill("#new", another)
		b.press("#change ~ details button.primary")
		b.waitFor("[role=alert]")
		b.seen("account-wrong")
		b.fill("#old", password)
		b.fill("#new", another)
		b.press("#change ~ details button.primary")
		b.seen("account-changed")
		b.visit("account")
		b.waitFor("form[action=logout]")
		other.visit("account")
		other.waitFor("#password")
		b.click("#devices ~ details.reveal summary")
		b.press("#devices ~ details.reveal form button")
		b.visit("account")
		b.waitFor("#password")
	})
}

func TestMailsAreStoppedAndResumed(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		s, b := begin(t, v)
		s.As("alice").Upload("file=a&m=ann@example.com", "a")
		all := regexp.MustCompile(`http://\S+`).FindAllString(mail(s), -1)
		b.visit(all[len(all)-1])
		b.waitText("ann@example.com")
		b.seen("stop")
		b.press("main form button")
		b.seen("stopped")
		b.press("main form button")
		b.visit("stop?" + url.Values{"t": {"wrong"}}.Encode())
		b.seen("stop-mistyped")
	})
}

func TestTheInboxShowsMailsInFrames(t *testing.T) {
	each(t, false, func(t *testing.T, v view) {
		s, b := begin(t, v)
		s.InProcess("it has an inbox")
		b.visit("inbox")
		b.seen("inbox-empty")
		s.As("alice").Upload("file=a&m=ann@example.com&c=%2B393401234567", "a")
		s.Deliver()
		b.visit("inbox")
		b.waitText("ann@example.com")
		b.seen("inbox")
	})
}

func TestAMissingPageSaysSo(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		_, b := begin(t, v)
		b.visit("nothing")
		b.seen("missing")
	})
}
