package account_test

import (
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

func limited(hour, day int64) apitest.Option {
	return func(s *service.Settings, _ *local.ServiceOptions) { s.Notices.PerHour, s.Notices.PerDay = hour, day }
}

func TestACallerSeesWhatTheAccountIsAndHasLeft(t *testing.T) {
	t.Parallel()
	c := apitest.New(t, limited(5, 7)).Add("alice", func(u *users.User) {
		u.Phone, u.Lang, u.Quota = "+393401234567", "it", 1000
	})
	c.Upload("file=x&m=ann@example.com", "content")
	c.Ask("DELETE /files/1", "").Want(200)
	left := func(limit int64, period time.Duration) *wire.Allowance {
		return &wire.Allowance{Limit: limit, Left: limit - 1, Reset: c.Clock.Now().UTC().Truncate(period).Add(period)}
	}
	expect.Equal(t, "the account", apitest.Read[wire.Account](c.Ask("GET /me", "").Want(200)), wire.Account{
		Name: "alice", Email: "alice@example.com", Phone: "+393401234567", Lang: "it", Quota: &wire.Quota{
			Limit: 1000,
			Used:  7,
		},
		Notices: wire.Notices{Hour: left(5, time.Hour), Day: left(7, 24*time.Hour)},
	})
}

func TestWhatIsNotLimitedIsNotShown(t *testing.T) {
	t.Parallel()
	got := apitest.Read[wire.Account](apitest.Begin(t, limited(0, 0)).Ask("GET /me", "").Want(200))
	expect.Equal(t, "the account", got, wire.Account{Name: "ann", Email: "ann@example.com", Lang: "en"})
}
