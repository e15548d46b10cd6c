package local_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

// TestClockThatWasAYearAheadLocksNobodyOut makes a request while the clock is a year ahead, and a second one once it is right.
func TestClockThatWasAYearAheadLocksNobodyOut(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	basic := apitest.Basic("alice", password)
	for what, k := range map[string]struct {
		ahead func(s *apitest.Server, bearer string) string // returns what the second request needs
		then  func(s *apitest.Server, of string) *http.Response
		want  int
	}{
		"wrong passwords": {
			func(s *apitest.Server, _ string) string {
				for i := range 8 {
					s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", fmt.Sprint("wrong ", i)))
					s.Clock.Advance(8 * time.Second)
				}
				return ""
			},
			func(s *apitest.Server, _ string) *http.Response {
				return s.Request("POST", "/auth/login", nil, "Authorization", basic)
			}, 200,
		},
		"forgotten passwords": {
			func(s *apitest.Server, _ string) string {
				for range 3 {
					s.Text(s.Request("GET", "/auth/forget?u=alice", nil))
				}
				return ""
			},
			func(s *apitest.Server, _ string) *http.Response { return s.Request("GET", "/auth/forget?u=alice", nil) }, 200,
		},
		"a bearer": {
			func(_ *apitest.Server, bearer string) string { return bearer },
			func(s *apitest.Server, bearer string) *http.Response {
				return s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+bearer)
			}, 401,
		},
		"a change link": {
			func(s *apitest.Server, _ string) string {
				link := s.Decode(s.Request("POST", "/auth/first", nil, "Authorization", apitest.Basic("new", password)), 200).LinkURL
				return strings.TrimPrefix(link, s.Base)
			},
			func(s *apitest.Server, link string) *http.Response { return s.Request("POST", link, nil) }, 401,
		},
		"a session": {
			func(s *apitest.Server, bearer string) string { return begun(s, bearer, `{"name":"x","length":5}`) },
			func(s *apitest.Server, path string) *http.Response {
				return s.Request("GET", path, nil, "Authorization", basic)
			}, 404,
		},
		"a reservation": {
			func(s *apitest.Server, bearer string) string {
				return begun(s, bearer, `{"name":"x","length":10,"d":"bob"}`)
			},
			func(s *apitest.Server, _ string) *http.Response {
				return s.Request("POST", "/uploads", strings.NewReader(`{"name":"y","length":10,"d":"bob"}`), "Authorization", basic)
			}, 201,
		},
		"a part's URL": {
			func(s *apitest.Server, bearer string) string {
				return partOf(s, bearer, begun(s, bearer, `{"name":"x","length":5}`))
			},
			func(s *apitest.Server, path string) *http.Response {
				return s.Request("PUT", path, strings.NewReader("hello"))
			}, 403,
		},
		"a key": {
			func(s *apitest.Server, bearer string) string {
				s.Text(s.Request("POST", "/upload?file=x", strings.NewReader("hello"), "Authorization", "Bearer "+bearer, "Idempotency-Key", "1"))
				return ""
			},
			func(s *apitest.Server, _ string) *http.Response { // another request: a remembered key would be a 409
				return s.Request("POST", "/upload?file=y", strings.NewReader("hello"), "Authorization", basic, "Idempotency-Key", "1")
			}, 200,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t)
			s.AddUser("alice", password)
			s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
			s.AddUser("bob", password, func(u *auth.User) { u.Quota = 10 })
			s.Clock.Advance(year)
			of := k.ahead(s, s.Login("alice", password))
			s.Clock.Advance(-year)
			resp := k.then(s, of)
			if wait, _ := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != k.want || wait > 0 {
				t.Errorf("status %d, Retry-After %d (%s), want %d", resp.StatusCode, wait, resp.Header.Get("Ferry-Error"), k.want)
			}
		})
	}
}
