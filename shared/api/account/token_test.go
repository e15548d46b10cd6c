package account_test

import (
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/users"
)

const (
	escapedPassword = "a password & more"
	urlencoded      = "application/x-www-form-urlencoded"
)

func passwordGrant(name, password string) string {
	return url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}}.Encode()
}

func beginToken(t *testing.T) *apitest.Server {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("alice", escapedPassword)
	s.AddUser("off", escapedPassword, func(u *users.User) { u.State = users.Disabled })
	return s
}

func TestPasswordGrant(t *testing.T) {
	t.Parallel()
	s, good := beginToken(t), passwordGrant("alice", escapedPassword)
	for what, c := range map[string]struct {
		kind, body string
		status     int
		says       string
	}{
		"user and password":            {urlencoded, good, 200, ""},
		"with a charset":               {urlencoded + ";charset=UTF-8", good, 200, ""},
		"with a client id in the form": {urlencoded, good + "&client_id=x&client_secret=y&scope=z", 200, ""},
		"in capitals":                  {urlencoded, passwordGrant("ALICE", escapedPassword), 200, ""},
		"a wrong password":             {urlencoded, passwordGrant("alice", "x"), 401, "not valid"},
		"an unknown user":              {urlencoded, passwordGrant("nobody", escapedPassword), 401, "not valid"},
		"a disabled user":              {urlencoded, passwordGrant("off", escapedPassword), 401, "not valid"},
		"no user":                      {urlencoded, "grant_type=password&password=x", 400, "username"},
		"no password":                  {urlencoded, "grant_type=password&username=alice", 400, "password"},
		"no grant":                     {urlencoded, "username=alice&password=x", 400, "grant_type"},
		"another grant":                {urlencoded, "grant_type=client_credentials", 400, "grant_type"},
		"JSON":                         {"application/json", `{"grant_type":"password"}`, 400, urlencoded},
		"no type":                      {"", good, 400, urlencoded},
		"an empty form":                {urlencoded, "", 400, "grant_type"},
		"a malformed form":             {urlencoded, "grant_type=%zz", 400, "form"},
		"a form too long":              {urlencoded, good + "&x=" + strings.Repeat("x", 16<<10), 413, "larger"},
	} {
		a := s.Send("POST /oauth2/token", c.body, "Content-Type", c.kind).Want(c.status, c.says)
		body := apitest.Read[struct {
			AccessToken string `json:"access_token"`
			Error       int
		}](a)
		if c.status != 200 {
			expect.Equal(t, what, body.Error, c.status)
			continue
		}
		s.Send("GET /download/list", "", "Authorization", "Bearer "+body.AccessToken).Want(200)
	}
}

func TestClientsBasicHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	s, good := beginToken(t), passwordGrant("alice", escapedPassword)
	for _, credential := range []string{apitest.Basic("client", "secret"), apitest.Basic("alice", "wrong"), "Basic !"} {
		s.Send("POST /oauth2/token", good, "Content-Type", urlencoded, "Authorization", credential).Want(200)
	}
	right := apitest.Basic("alice", escapedPassword) // in the header, and then in the query, instead of the form
	s.Send("POST /oauth2/token", "grant_type=password", "Content-Type", urlencoded, "Authorization", right).Want(400)
	s.Send("POST /oauth2/token?"+good, "", "Content-Type", urlencoded, "Authorization", right).Want(400)
}

func TestRevokedBearerStopsWorking(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	other := c.As("ann")
	for _, k := range []struct {
		form url.Values
		then int // the status of a request with the bearer
	}{
		{url.Values{"token": {"unknown"}}, 200},
		{url.Values{"token": {c.Bearer[:20]}, "token_type_hint": {"refresh_token"}}, 200},
		{url.Values{"token": {c.Bearer}, "token_type_hint": {"access_token"}}, 401},
		{url.Values{"token": {c.Bearer}}, 401},
	} {
		a := c.Send("POST /oauth2/revoke", k.form.Encode(), "Content-Type", urlencoded).Want(200)
		expect.Equal(t, "the answer", a.Text+a.Header.Get("Cache-Control"), "no-store")
		c.Ask("GET /download/list", "").Want(k.then)
		other.Ask("GET /download/list", "").Want(200)
	}
}

func TestRevokingNeedsAToken(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{urlencoded, "x=y", 400}, {urlencoded, "token=", 400}, {"application/json", `{"token":"x"}`, 400},
		{urlencoded, "token=" + strings.Repeat("x", 16<<10), 413},
	} {
		s.Send("POST /oauth2/revoke?token=x", c.body, "Content-Type", c.kind).Want(c.status)
	}
}
