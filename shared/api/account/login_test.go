package account_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/apitest"
)

const authloginPassword = "pässword: with a colon"

func TestALoginNeedsUserAndPassword(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", authloginPassword)
	bearer := s.Login("alice", authloginPassword)
	for _, c := range []struct {
		what, auth string
		status     int
	}{
		{"the right ones", apitest.Basic("alice", authloginPassword), 200},
		{"the name in capitals", apitest.Basic("ALICE", authloginPassword), 200},
		{"a scheme in small letters", "basic " + strings.TrimPrefix(apitest.Basic("alice", authloginPassword), "Basic "), 200},
		{"a wrong password", apitest.Basic("alice", "wrong"), 401},
		{"an empty password", apitest.Basic("alice", ""), 401},
		{"an unknown user", apitest.Basic("nobody", authloginPassword), 401},
		{"a name that nobody can have", apitest.Basic("no body", authloginPassword), 401},
		{"the same name again", apitest.Basic("no body", authloginPassword), 401},
		{"no name", apitest.Basic("", authloginPassword), 401},
		{"a bearer", "Bearer " + bearer, 401},
		{"nothing", "", 401},
		{"broken base64", "Basic !", 401},
	} {
		resp := s.Request("POST", "/auth/login", strings.NewReader("{}"), "Authorization", c.auth, "Content-Type", "application/json")
		says := resp.Header.Get("Ferry-Error")
		if e := s.Decode(resp, c.status); c.status == 200 && (e.User != "alice" || len(e.Bearer) < 40) {
			t.Errorf("%s: the answer is %+v", c.what, e)
		}
		if c.status == 401 && (len(says) < 20 || len(resp.Header.Values("WWW-Authenticate")) != 2) {
			t.Errorf("%s: it says %q, %q", c.what, says, resp.Header.Values("WWW-Authenticate"))
		}
	}
}

func TestEachLoginGivesABearerOfItsOwn(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", authloginPassword)
	first, second := s.Login("alice", authloginPassword), s.Login("alice", authloginPassword)
	if first == second {
		t.Error("two logins give one bearer")
	}
	for _, b := range []string{first, second} {
		s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+b), 200)
	}
	s.Clock.Advance(time.Hour)
	s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+first), 401)
}

func TestTooManyFailuresAreToldWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Clock.Advance(0) // ends it on a stack, of which four answers may take longer than the second that is waited for
	s.AddUser("alice", authloginPassword)
	s.AddUser("bob", authloginPassword)
	for i := range 5 {
		s.Decode(s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", fmt.Sprint("wrong ", i))), 401)
	}
	for _, route := range []string{"POST /auth/login", "GET /download/list", "POST /auth/first", "POST /upload?file=x"} {
		method, path, _ := strings.Cut(route, " ")
		resp := s.Request(method, path, nil, "Authorization", apitest.Basic("alice", authloginPassword))
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if s.Decode(resp, 429); err != nil || after != 1 || resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Retry-After is %d, %v", route, after, err)
		}
	}
	s.Login("bob", authloginPassword)
	s.Clock.Advance(time.Second)
	s.Login("alice", authloginPassword)
}
