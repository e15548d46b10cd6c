package account_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

const temporaryPassword = "a temporary one"

func TestOnlyNewUsersHaveFirstAccess(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("new", temporaryPassword, func(u *auth.User) { u.State, u.Lang = auth.FirstAccess, "de" })
	s.AddUser("alice", temporaryPassword)
	s.AddUser("off", temporaryPassword, func(u *auth.User) { u.State = auth.Disabled })
	bearer := s.Login("alice", temporaryPassword)
	for _, c := range []struct {
		what, auth string
		status     int
	}{
		{"a new user", apitest.Basic("new", temporaryPassword), 200},
		{"a new user again", apitest.Basic("NEW", temporaryPassword), 200},
		{"a wrong password", apitest.Basic("new", "wrong"), 401},
		{"an unknown user", apitest.Basic("nobody", temporaryPassword), 401},
		{"a user who has chosen a password", apitest.Basic("alice", temporaryPassword), 403},
		{"a disabled user", apitest.Basic("off", temporaryPassword), 401},
		{"a bearer", "Bearer " + bearer, 401},
		{"no credential", "", 401},
	} {
		resp := s.Request("POST", "/auth/first", nil, "Authorization", c.auth)
		if c.status != 200 && resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", c.what)
		}
		e := s.Decode(resp, c.status)
		if c.status == 200 && (e.User != "new" || !strings.HasPrefix(e.LinkURL, s.Base+"/auth/change?lang=de&k=")) {
			t.Errorf("%s: the answer is %+v", c.what, e)
		}
	}
}

func TestTemporaryPasswordWorksOnlyForFirstAccess(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("new", temporaryPassword, func(u *auth.User) { u.State = auth.FirstAccess })
	auth := apitest.Basic("new", temporaryPassword)
	for route, body := range map[string]string{
		"POST /auth/login": "", "GET /download/list": "", "GET /download/list/backup": "", "POST /upload?file=x": "x", "DELETE /files/1": "", "POST /files/1/restore": "",
	} {
		method, path, _ := strings.Cut(route, " ")
		resp := s.Request(method, path, strings.NewReader(body), "Authorization", auth)
		if says := resp.Header.Get("Ferry-Error"); resp.StatusCode != 401 || !strings.Contains(says, "/auth/first") {
			t.Errorf("%s: status %d, %q", route, resp.StatusCode, says)
		}
	}
	resp := s.Request("POST", "/oauth2/token", strings.NewReader("grant_type=password&username=new&password=a+temporary+one"), "Content-Type", "application/x-www-form-urlencoded")
	if resp.StatusCode != 401 {
		t.Errorf("/oauth2/token: status %d", resp.StatusCode)
	}
}
