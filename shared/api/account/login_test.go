package account_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

const accentedPassword = "pässword: with a colon"

func TestLoginNeedsUserAndPassword(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", accentedPassword)
	bearer := s.Login("alice", accentedPassword)
	for _, c := range []struct {
		what, auth string
		status     int
	}{
		{"name and password", apitest.Basic("alice", accentedPassword), 200},
		{"the name in capitals", apitest.Basic("ALICE", accentedPassword), 200},
		{"a lower-case scheme", "basic " + strings.TrimPrefix(apitest.Basic("alice", accentedPassword), "Basic "), 200},
		{"a wrong password", apitest.Basic("alice", "wrong"), 401},
		{"an empty password", apitest.Basic("alice", ""), 401},
		{"an unknown user", apitest.Basic("nobody", accentedPassword), 401},
		{"an impossible name", apitest.Basic("no body", accentedPassword), 401},
		{"the impossible name again", apitest.Basic("no body", accentedPassword), 401},
		{"no name", apitest.Basic("", accentedPassword), 401},
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
			t.Errorf("%s: Ferry-Error is %q, WWW-Authenticate %q", c.what, says, resp.Header.Values("WWW-Authenticate"))
		}
	}
}

func TestEachLoginGivesANewBearer(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", accentedPassword)
	first, second := s.Login("alice", accentedPassword), s.Login("alice", accentedPassword)
	if first == second {
		t.Error("two logins give the same bearer")
	}
	for _, b := range []string{first, second} {
		s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+b), 200)
	}
	s.Clock.Advance(time.Hour)
	s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+first), 401)
}

func TestTooManyFailuresGetRetryAfter(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Clock.Advance(0) // skips the test on a stack, where four answers may take longer than the wait of a second
	s.AddUser("alice", accentedPassword)
	s.AddUser("bob", accentedPassword)
	for i := range 5 {
		s.Decode(s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", fmt.Sprint("wrong ", i))), 401)
	}
	for _, route := range []string{"POST /auth/login", "GET /download/list", "POST /auth/first", "POST /upload?file=x"} {
		method, path, _ := strings.Cut(route, " ")
		resp := s.Request(method, path, nil, "Authorization", apitest.Basic("alice", accentedPassword))
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if s.Decode(resp, 429); err != nil || after != 1 || resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Retry-After is %d, %v", route, after, err)
		}
	}
	s.Login("bob", accentedPassword)
	s.Clock.Advance(time.Second)
	s.Login("alice", accentedPassword)
}
