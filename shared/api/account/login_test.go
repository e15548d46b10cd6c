package account_test

import (
	"fmt"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

const accentedPassword = "pässword: with a colon"

// TestLoginNeedsUserAndPassword leaves the forms of a header to auth's tests.
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
		apitest.Equal(t, request, a.Header.Get("Retry-After"), "1")
	}
	a := c.Send("POST /oauth2/token", passwordGrant("ann", apitest.Password), "Content-Type", urlencoded).Want(429)
	apitest.Equal(t, "an OAuth error", a.Text, `{"error":429,"error_description":"Too Many Requests","error_uri":"`+c.Base+`"}`+"\n")
	apitest.Equal(t, "a token", a.Header.Get("Retry-After"), "1")
	c.As("bob")
	c.Clock.Advance(time.Second)
	c.As("ann")
}
