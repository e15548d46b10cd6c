package browser_test

import (
	"regexp"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/users"
	"ferry/shared/web/browsertest"
)

const another = "another good password"

func linksIn(text string) []string { return regexp.MustCompile(`http://\S+`).FindAllString(text, -1) }

// opens visits the account, which shows something: a form to log in, to who has not.
func opens(b *browsertest.Tab, shows string) {
	b.Helper()
	b.Visit("account")
	b.WaitFor(shows)
}

func TestALoginLastsUntilItIsEnded(t *testing.T) {
	each(t, true, func(_ *testing.T, _ *apitest.Server, b *browsertest.Tab) {
		b.Visit("account")
		b.Seen("login")
		b.Submit("#user", "alice", "#password", "wrong")
		b.Seen("login-wrong", "[role=alert]")
		b.Submit("#password", password)
		b.Seen("account", "form[action=logout]")
		b.Press("form[action=logout] button")
		opens(b, "#password")
	})
}

func TestAForgottenPasswordIsReplacedByTheMailsLink(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		b.Visit("login")
		b.Press(`a[href^="forgot"]`)
		b.Seen("forgot", "#user")
		b.Submit("#user", "alice")
		b.Seen("password", "#code")
		text := s.Mail()
		b.Visit(linksIn(text)[0]) // as from another device
		b.Submit("#code", "00000000", "#new", another)
		b.Seen("password-wrong", "[role=alert]")
		b.Submit("#code", regexp.MustCompile(`(?m)^\d{8}$`).FindString(text), "#new", another)
		b.Seen("login-changed", "#password")
		b.Login("alice", another)
		opens(b, "form[action=logout]")
		b.Visit(linksIn(text)[0])
		b.Lacks("#code")
		b.Seen("password-dead")
	})
}

func TestATemporaryPasswordLeadsToChoosingOne(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		s.AddUser("new", "temporary word", func(u *users.User) { u.State = users.FirstAccess })
		b.Login("new", "temporary word")
		b.Seen("password-first", "#new")
		if b.Fill("#new", "short"); !b.Scriptless { // the browser itself refuses it
			b.Click("main form button.primary")
		}
		b.Submit("#new", another) // which logs in
		opens(b, "form[action=logout]")
	})
}

func TestAnAccountIsLookedAfter(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		other := browsertest.Open(t, s.Root, b.View)
		other.Login("alice", password)
		b.Login("alice", password)
		b.Visit("account")
		b.Click("#tokens ~ details.fold summary")
		b.Submit("#name", "build <b>server</b>")
		b.Seen("account-token", "#token")
		if !b.Scriptless {
			b.Click("[data-copy=token]")
			b.Seen("account-token-copied")
		}
		b.Visit("account")
		for _, list := range []string{"#tokens", "#devices"} {
			b.Click(list + " ~ .rows details.reveal summary")
			b.Press(list + " ~ .rows details.reveal form button")
		}
		opens(other, "#password")
		opens(b, "form[action=logout]")
		other.Login("alice", password)
		b.Click("#change ~ details summary")
		b.Submit("#old", "wrong", "#new", another)
		b.Seen("account-wrong", "[role=alert]")
		b.Submit("#old", password, "#new", another)
		b.Seen("account-changed")
		opens(other, "#password")
		opens(b, "form[action=logout]")
		b.Click("#devices ~ details.reveal summary") // all ends
		b.Press("#devices ~ details.reveal form button")
		opens(b, "#password")
	})
}
