package account_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

type left struct {
	Limit, Left int64
	Reset       time.Time
}

type me struct {
	Name, Email, Phone, Lang string
	Quota                    *struct{ Limit, Used int64 }
	Notices                  struct{ Hour, Day *left }
}

func askMe(t *testing.T, s *apitest.Server, credential string) (got me) {
	t.Helper()
	resp := s.Request("GET", "/me", nil, "Authorization", credential)
	if text := s.Text(resp); resp.StatusCode != 200 || json.Unmarshal([]byte(text), &got) != nil {
		t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	return got
}

func TestACallerSeesWhatTheAccountIsAndHasLeft(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(s *api.Settings, _ *local.ServiceOptions) { s.Notices.PerHour, s.Notices.PerDay = 5, 7 })
	s.AddUser("alice", password, func(u *auth.User) {
		u.Email, u.Phone, u.Lang, u.Quota = "alice@example.com", "+393401234567", "it", 1000
	})
	bearer := s.Login("alice", password)
	s.Put(bearer, "file=x&m=ann@example.com", "content")
	s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", "Bearer "+bearer), 200)
	s.Calls.Reset()
	got := askMe(t, s, "Bearer "+bearer)
	if calls := s.Calls.Reset(); !maps.Equal(calls, map[string]int{"table.GetMany": 2}) {
		t.Errorf("it made the calls %v", calls)
	}
	if got.Name != "alice" || got.Email != "alice@example.com" || got.Phone != "+393401234567" || got.Lang != "it" {
		t.Errorf("the account is %+v", got)
	}
	if got.Quota == nil || got.Quota.Limit != 1000 || got.Quota.Used != 7 {
		t.Errorf("the quota is %+v", got.Quota)
	}
	now := s.Clock.Now()
	for name, c := range map[string]struct {
		got         *left
		limit, left int64
		length      time.Duration
	}{"hour": {got.Notices.Hour, 5, 4, time.Hour}, "day": {got.Notices.Day, 7, 6, 24 * time.Hour}} {
		if c.got == nil || c.got.Limit != c.limit || c.got.Left != c.left || c.got.Reset.Sub(now) > c.length || c.got.Reset.Truncate(c.length) != c.got.Reset {
			t.Errorf("of notices in the %s there are left %+v", name, c.got)
		}
	}
}

func TestWhatIsNotLimitedIsNotShown(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(s *api.Settings, _ *local.ServiceOptions) { s.Notices.PerHour, s.Notices.PerDay = 0, 0 })
	s.AddUser("alice", password)
	if got := askMe(t, s, apitest.Basic("alice", password)); got != (me{Name: "alice", Email: "alice@example.com", Lang: "en"}) {
		t.Errorf("the account is %+v", got)
	}
}

func TestOnlyTheCallersOwnAccountIsShown(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	for _, credential := range []string{"", apitest.Basic("alice", "wrong"), "Bearer none", apitest.Basic("new", password)} {
		s.Decode(s.Request("GET", "/me", nil, "Authorization", credential), 401)
	}
	s.Decode(s.Request("POST", "/me", strings.NewReader("x"), "Authorization", apitest.Basic("alice", password)), 405)
}
