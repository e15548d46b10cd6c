package account_test

import (
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

const urlencoded = "application/x-www-form-urlencoded"

func passwordGrant(name, password string) string {
	return url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}}.Encode()
}

// TestPasswordGrant leaves forms and passwords that are wrong to the tests of param and identity.
func TestPasswordGrant(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", "a password & more")
	good, right := passwordGrant("alice", "a password & more"), apitest.Basic("alice", "a password & more")
	a := s.Send("POST /oauth2/token", good+"&client_id=x&client_secret=y&scope=z", "Content-Type", urlencoded).Want(200)
	bearer := apitest.Read[map[string]any](a)["access_token"].(string)
	s.Send("GET /download/list", "", "Authorization", "Bearer "+bearer).Want(200)
	for _, credential := range []string{apitest.Basic("client", "secret"), apitest.Basic("alice", "wrong"), "Basic !"} {
		s.Send("POST /oauth2/token", good, "Content-Type", urlencoded, "Authorization", credential).Want(200)
	}
	// What is right in the header or in the query makes up for nothing in the form.
	s.Send("POST /oauth2/token?"+good, "", "Content-Type", urlencoded, "Authorization", right).Want(400, "grant_type")
	for _, form := range []string{
		"grant_type=password", "grant_type=password&username=alice", "grant_type=password&password=x",
	} {
		s.Send("POST /oauth2/token?"+good, form, "Content-Type", urlencoded, "Authorization", right).
			Want(400, "username and password")
	}
	s.Send("POST /oauth2/token", "grant_type=%zz", "Content-Type", urlencoded).Want(400, "form")
	s.Send("POST /oauth2/token", good+"&x="+strings.Repeat("x", 16<<10), "Content-Type", urlencoded).Want(413, "larger")
}

func TestRevokedBearerStopsWorking(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	revoke := func(form string) apitest.Answer { // what is in the query does not count
		return c.Send("POST /oauth2/revoke?token="+c.Bearer, form, "Content-Type", urlencoded)
	}
	for _, wrong := range []string{"token=", "token=%zz"} {
		revoke(wrong).Want(400)
	}
	revoke("token=unknown").Want(200)
	c.Ask("GET /me", "").Want(200)
	for range 2 {
		revoke("token_type_hint=access_token&token=" + c.Bearer).Want(200)
		c.Ask("GET /me", "").Want(401)
	}
}
