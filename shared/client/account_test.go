package client_test

import (
	"errors"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/client"
)

func TestAPurgeFreesTheRoomThatTheAccountShows(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	s.AddUser("bob", password, func(u *auth.User) { u.Quota = 1000 })
	c, ctx := connect(t, s, "bob"), t.Context()
	uses := func(want int64) {
		t.Helper()
		a, err := c.Account(ctx)
		if err != nil || a.Name != "bob" || a.Quota == nil || a.Quota.Limit != 1000 || a.Quota.Used != want || a.Notices.Day == nil {
			t.Errorf("the account is %+v, %v; it should use %d bytes", a, err, want)
		}
	}
	f, err := c.Upload(ctx, "a", "", []byte("content"), client.Delivery{})
	must(t, err)
	if err := c.Purge(ctx, f.ID); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("purging a file of the user area: %v", err)
	}
	if _, err := c.Delete(ctx, f.ID); err != nil {
		t.Fatal(err)
	}
	uses(7)
	for range 2 {
		must(t, c.Purge(ctx, f.ID))
	}
	uses(0)
}
