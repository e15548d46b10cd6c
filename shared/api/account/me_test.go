package account_test

import (
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/users"
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

func limited(hour, day int64) apitest.Option {
	return func(s *service.Settings, _ *local.ServiceOptions) { s.Notices.PerHour, s.Notices.PerDay = hour, day }
}

func TestACallerSeesWhatTheAccountIsAndHasLeft(t *testing.T) {
	t.Parallel()
	c := apitest.New(t, limited(5, 7)).Add("alice", func(u *users.User) {
		u.Email, u.Phone, u.Lang, u.Quota = "alice@example.com", "+393401234567", "it", 1000
	})
	c.Upload("file=x&m=ann@example.com", "content")
	c.Ask("DELETE /files/1", "").Want(200)
	c.Send("GET /me", "").Want(401)
	c.Calls.Reset()
	got := apitest.Read[me](c.Ask("GET /me", "").Want(200))
	expect.Equal(t, "the calls", c.Calls.Reset(), map[string]int{"table.GetMany": 2})
	expect.Equal(t, "the account", got.Name+got.Email+got.Phone+got.Lang, "alicealice@example.com+393401234567it")
	expect.Equal(t, "the quota", got.Quota, &struct{ Limit, Used int64 }{1000, 7})
	now := c.Clock.Now()
	for name, k := range map[string]struct {
		got         *left
		limit, left int64
		length      time.Duration
	}{"hour": {got.Notices.Hour, 5, 4, time.Hour}, "day": {got.Notices.Day, 7, 6, 24 * time.Hour}} {
		if k.got == nil || k.got.Limit != k.limit || k.got.Left != k.left || k.got.Reset.Sub(now) > k.length || k.got.Reset.Truncate(k.length) != k.got.Reset {
			t.Errorf("of notices in the %s there are left %+v", name, k.got)
		}
	}
}

func TestWhatIsNotLimitedIsNotShown(t *testing.T) {
	t.Parallel()
	got := apitest.Read[me](apitest.Begin(t, limited(0, 0)).Ask("GET /me", "").Want(200))
	expect.Equal(t, "the account", got, me{Name: "ann", Email: "ann@example.com", Lang: "en"})
}
