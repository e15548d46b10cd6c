package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

// login sends a user's name and password.
func login(s *apitest.Server, name, password string) apitest.Answer {
	s.Helper()
	return s.Send("POST /auth/login", "", "Authorization", apitest.Basic(name, password))
}

// TestAPasswordInLatin1IsOneWithItsUTF8: some clients write headers in Latin-1, and then try UTF-8.
func TestAPasswordInLatin1IsOneWithItsUTF8(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	const accented = "pässword: with a colon"
	c.AddUser("alice", accented)
	latin := strings.NewReplacer("ä", "\xe4", "ö", "\xf6").Replace
	login(c.Server, "alice", latin(accented)).Want(200)
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
	for i, request := range []string{
		"POST /auth/login", "GET /download/list", "POST /oauth2/token", "POST /upload?file=x", "GET /me",
	} {
		guess := fmt.Sprint("wrong ", i)
		c.Send(
			request,
			passwordGrant("ann", guess),
			"Content-Type",
			urlencoded,
			"Authorization",
			apitest.Basic("ann", guess),
		).
			Want(401)
	}
	for _, request := range []string{
		"POST /auth/login", "GET /download/list", "POST /auth/first", "POST /upload?file=x",
	} {
		c.Send(request, "", "Authorization", apitest.Basic("ann", apitest.Password)).
			Want(429).
			WantHeaders("Retry-After", "1")
	}
	c.Send("POST /oauth2/token", passwordGrant("ann", apitest.Password), "Content-Type", urlencoded).
		Want(429).
		WantHeaders("Retry-After", "1")
	c.As("bob")
	c.Clock.Advance(time.Second)
	c.As("ann")
}
