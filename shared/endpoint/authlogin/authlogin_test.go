package authlogin_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/service/servicetest"
)

const password = "pässword: with a colon"

func TestALoginNeedsUserAndPassword(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	for _, c := range []struct {
		what, auth string
		status     int
	}{
		{"the right ones", servicetest.Basic("alice", password), 200},
		{"the name in capitals", servicetest.Basic("ALICE", password), 200},
		{"a scheme in small letters", "basic " + strings.TrimPrefix(servicetest.Basic("alice", password), "Basic "), 200},
		{"a wrong password", servicetest.Basic("alice", "wrong"), 401},
		{"an empty password", servicetest.Basic("alice", ""), 401},
		{"an unknown user", servicetest.Basic("nobody", password), 401},
		{"a name that nobody can have", servicetest.Basic("no body", password), 401},
		{"the same name again", servicetest.Basic("no body", password), 401},
		{"no name", servicetest.Basic("", password), 401},
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
	s := servicetest.New(t)
	s.AddUser("alice", password)
	first, second := s.Login("alice", password), s.Login("alice", password)
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
	s := servicetest.New(t)
	s.Clock.Advance(0) // ends it on a stack, of which four answers may take longer than the second that is waited for
	s.AddUser("alice", password)
	s.AddUser("bob", password)
	for i := range 5 {
		s.Decode(s.Request("POST", "/auth/login", nil, "Authorization", servicetest.Basic("alice", fmt.Sprint("wrong ", i))), 401)
	}
	for _, route := range []string{"POST /auth/login", "GET /download/list", "POST /auth/first", "POST /upload?file=x"} {
		method, path, _ := strings.Cut(route, " ")
		resp := s.Request(method, path, nil, "Authorization", servicetest.Basic("alice", password))
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if s.Decode(resp, 429); err != nil || after != 1 || resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Retry-After is %d, %v", route, after, err)
		}
	}
	s.Login("bob", password)
	s.Clock.Advance(time.Second)
	s.Login("alice", password)
}
