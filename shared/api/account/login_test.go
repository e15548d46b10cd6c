package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/users"
)

// login sends a user's name and password.
func login(s *apitest.Server, name, password string) apitest.Answer {
	s.Helper()
	return s.Send("POST /auth/login", "", "Authorization", apitest.Basic(name, password))
}

const accentedPassword = "pässword: with a colon"

// TestLoginNeedsUserAndPassword leaves the forms of a header to the tests of identity.
func TestLoginNeedsUserAndPassword(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.AddUser("alice", accentedPassword)
	for credential, status := range map[string]int{
		apitest.Basic("alice", accentedPassword): 200, apitest.Basic("ALICE", accentedPassword): 200, apitest.Basic("alice", "wrong"): 401,
		apitest.Basic("nobody", accentedPassword): 401, apitest.Basic("no body", accentedPassword): 401, "Bearer " + c.Bearer: 401, "": 401,
	} {
		a := c.Send("POST /auth/login", "{}", "Authorization", credential, "Content-Type", "application/json").Want(status)
		if status == 200 && (a.User != "alice" || len(a.Bearer) < 40) || status == 401 && len(a.Header.Values("WWW-Authenticate")) != 2 {
			t.Errorf("%q: %v %s", credential, a.Header, a.Text)
		}
	}
}

// TestAPasswordInLatin1IsOneWithItsUTF8: some clients write headers in Latin-1, and then try UTF-8.
func TestAPasswordInLatin1IsOneWithItsUTF8(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.AddUser("alice", accentedPassword)
	latin := strings.NewReplacer("ä", "\xe4", "ö", "\xf6").Replace
	login(c.Server, "alice", latin(accentedPassword)).Want(200)
	for _, guess := range []string{latin("wröng"), "wröng"} {
		login(c.Server, "alice", guess).Want(401)
	}
	if item := c.Items()["throttle#127.0.0.1 user#alice"]; !c.InStack() && !strings.Contains(item, `"count":1`) {
		t.Errorf("one password in two charsets counts as %s", item)
	}
	const protect = "Ferry-Link-Password"
	c.Ask("POST /upload?file=a", "1", protect, "caf\ufffd").Want(400, "UTF-8")
	if !c.InStack() { // the gateway makes UTF-8 of a header
		link := c.Upload("file=a", "1", protect, "caf\xe9").LinkURL
		for _, given := range []string{"caf\xe9", "café"} {
			c.Send("GET "+link, "", protect, given).Want(302)
			c.Send("GET "+link, "", "Authorization", apitest.Basic("", given)).Want(302)
		}
	}
	for _, body := range []string{"username=alice&grant_type=password&password=%E4", "username=%E4&grant_type=password&password=x"} {
		c.Send("POST /oauth2/token", body, "Content-Type", urlencoded).Want(400)
	}
}

// TestTooManyFailuresGetRetryAfter: all endpoints share the count of failures.
func TestTooManyFailuresGetRetryAfter(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.Clock.Advance(0) // skips the test on a stack, where these answers may take longer than the wait of a second
	for i, request := range []string{"POST /auth/login", "GET /download/list", "POST /oauth2/token", "POST /upload?file=x", "GET /me"} {
		guess := fmt.Sprint("wrong ", i)
		c.Send(request, passwordGrant("ann", guess), "Content-Type", urlencoded, "Authorization", apitest.Basic("ann", guess)).Want(401)
	}
	for _, request := range []string{"POST /auth/login", "GET /download/list", "POST /auth/first", "POST /upload?file=x"} {
		a := c.Send(request, "", "Authorization", apitest.Basic("ann", apitest.Password)).Want(429)
		expect.Equal(t, request, a.Header.Get("Retry-After"), "1")
	}
	a := c.Send("POST /oauth2/token", passwordGrant("ann", apitest.Password), "Content-Type", urlencoded).Want(429)
	expect.Equal(t, "an OAuth error", a.Text, `{"error":429,"error_description":"Too Many Requests","error_uri":"`+c.Base+`"}`+"\n")
	expect.Equal(t, "a token", a.Header.Get("Retry-After"), "1")
	c.As("bob")
	c.Clock.Advance(time.Second)
	c.As("ann")
}

// beginFirst returns ann, and the credential of new, who has a temporary password.
func beginFirst(t *testing.T) (ann apitest.Caller, temporary string) {
	t.Helper()
	c := apitest.Begin(t)
	c.AddUser("new", apitest.Password, func(u *users.User) { u.State, u.Lang = users.FirstAccess, "de" })
	return c, apitest.Basic("new", apitest.Password)
}

func TestOnlyNewUsersHaveFirstAccess(t *testing.T) {
	t.Parallel()
	c, _ := beginFirst(t)
	c.AddUser("off", apitest.Password, func(u *users.User) { u.State = users.Disabled })
	for _, name := range []string{"new", "NEW"} {
		e := c.Send("POST /auth/first", "", "Authorization", apitest.Basic(name, apitest.Password)).Want(200)
		if e.User != "new" || !strings.HasPrefix(e.LinkURL, c.Base+"/auth/change?lang=de&k=") {
			t.Errorf("%s: the answer is %s", name, e.Text)
		}
	}
	for credential, status := range map[string]int{
		apitest.Basic("new", "wrong"): 401, apitest.Basic("nobody", apitest.Password): 401, apitest.Basic("off", apitest.Password): 401,
		apitest.Basic("ann", apitest.Password): 403, "Bearer " + c.Bearer: 401, "": 401,
	} {
		c.Send("POST /auth/first", "", "Authorization", credential).Want(status)
	}
}

func TestTemporaryPasswordWorksOnlyForFirstAccess(t *testing.T) {
	t.Parallel()
	c, temporary := beginFirst(t)
	for _, request := range []string{
		"POST /auth/login", "GET /download/list", "GET /download/list/backup", "POST /upload?file=x", "DELETE /files/1", "POST /files/1/restore", "GET /me",
	} {
		c.Send(request, "", "Authorization", temporary).Want(401, "/auth/first")
	}
	c.Send("POST /oauth2/token", passwordGrant("new", apitest.Password), "Content-Type", urlencoded).Want(401)
}
