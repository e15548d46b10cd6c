package local_test

import (
	"fmt"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/users"
)

// TestClockThatWasAYearAheadLocksNobodyOut makes a request while the clock is a year ahead, and a second one once it is right.
func TestClockThatWasAYearAheadLocksNobodyOut(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	list := func(c apitest.Caller, _ string) apitest.Answer { return c.Ask("GET /download/list", "") }
	for what, k := range map[string]struct {
		ahead func(c apitest.Caller) string // returns what the second request needs
		then  func(c apitest.Caller, of string) apitest.Answer
		want  int
	}{
		"wrong passwords": {
			ahead: func(c apitest.Caller) string {
				for i := range 8 {
					c.Send("POST /auth/login", "", "Authorization", apitest.Basic("ann", fmt.Sprint("wrong ", i)))
					c.Clock.Advance(8 * time.Second)
				}
				return ""
			},
			then: func(c apitest.Caller, _ string) apitest.Answer {
				return c.Send("POST /auth/login", "", "Authorization", apitest.Basic("ann", password))
			}, want: 200,
		},
		"forgotten passwords": {
			ahead: func(c apitest.Caller) string {
				for range 3 {
					c.Send("GET /auth/forget?u=ann", "").Want(200)
				}
				return ""
			},
			then: func(c apitest.Caller, _ string) apitest.Answer {
				return c.Send("GET /auth/forget?u=ann", "")
			}, want: 200,
		},
		"a bearer": {ahead: func(apitest.Caller) string { return "" }, then: list, want: 401},
		"a change link": {
			ahead: func(c apitest.Caller) string {
				return c.Send("POST /auth/first", "", "Authorization", apitest.Basic("new", password)).Want(200).LinkURL
			},
			then: func(c apitest.Caller, link string) apitest.Answer { return c.Send("POST "+link, "") }, want: 401,
		},
		"a session": {
			ahead: func(c apitest.Caller) string { path, _ := session(c, `{"name":"x","length":5}`); return path },
			then: func(c apitest.Caller, path string) apitest.Answer {
				return c.As("ann").Ask("GET "+path, "")
			}, want: 404,
		},
		"a reservation": {
			ahead: func(c apitest.Caller) string {
				path, _ := session(c, `{"name":"x","length":10,"d":"eve"}`)
				return path
			},
			then: func(c apitest.Caller, _ string) apitest.Answer {
				return c.As("ann").Ask("POST /uploads", `{"name":"y","length":10,"d":"eve"}`)
			}, want: 201,
		},
		"a part's URL": {
			ahead: func(c apitest.Caller) string { _, part := session(c, `{"name":"x","length":5}`); return part },
			then: func(c apitest.Caller, part string) apitest.Answer {
				return c.Send("PUT "+part, "hello")
			}, want: 403,
		},
		"a key": {
			ahead: func(c apitest.Caller) string {
				return c.Upload("file=x", "hello", "Idempotency-Key", "1").LinkURL
			},
			then: func(c apitest.Caller, _ string) apitest.Answer { // another request: a remembered key would be a 409
				return c.As("ann").Ask("POST /upload?file=y", "hello", "Idempotency-Key", "1")
			}, want: 200,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t)
			s.AddUser("new", password, func(u *users.User) { u.State = users.FirstAccess })
			s.AddUser("eve", password, apitest.Quota(10))
			s.Clock.Advance(year)
			c := s.Add("ann")
			of := k.ahead(c)
			c.Clock.Advance(-year)
			k.then(c, of).Want(k.want).WantHeaders("Retry-After", "")
		})
	}
}
