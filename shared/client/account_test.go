package client_test

import (
	"context"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
	"ferry/shared/users"
)

func TestAPurgeFreesTheRoomThatTheAccountShows(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	s.AddUser("bob", password, func(u *users.User) { u.Quota = 1000 })
	c, ctx := connect(t, s, "bob"), t.Context()
	uses := func(want int64) {
		t.Helper()
		a, err := c.Account(ctx)
		if err != nil ||
			a.Name != "bob" ||
			a.Quota == nil ||
			a.Quota.Limit != 1000 ||
			a.Quota.Used != want ||
			a.Notices.Day == nil {
			t.Errorf("the account is %+v, %v; it should use %d bytes", a, err, want)
		}
	}
	f, err := c.Upload(ctx, "a", "", []byte("content"), client.Delivery{})
	must(t, err)
	expect.Err(t, "purging a file of the user area", c.Purge(ctx, f.ID), client.ErrNotFound)
	if _, err := c.Delete(ctx, f.ID); err != nil {
		t.Fatal(err)
	}
	uses(7)
	for range 2 {
		must(t, c.Purge(ctx, f.ID))
	}
	uses(0)
}

// using returns a client that sends this token.
func using(t *testing.T, s *apitest.Server, token string) *client.Client {
	t.Helper()
	return newClient(t, client.Options{
		URL:   s.Base,
		Retry: quick(),
		Bearer: func(_ context.Context, refused string) (string, error) {
			if refused != "" {
				return "", client.ErrNoLogin
			}
			return token, nil
		},
	})
}

func TestADeviceMakesAndEndsTokens(t *testing.T) {
	t.Parallel()
	s, ann := start(t)
	ctx := t.Context()
	wantStatus(t, "with a wrong password", failed(ann.LoginDevice(ctx, "ann", "wrong", "host")), 401)
	login, err := ann.LoginDevice(ctx, "ann", password, "host")
	must(t, err)
	device := using(t, s, login)
	s.Clock.Advance(time.Second) // the list shows the newest first
	made, err := device.AddToken(ctx, client.NewToken{Name: "backup", Scope: "upload", Expires: "7d"})
	must(t, err)
	program := using(t, s, made.Token)
	if _, err := program.Upload(ctx, "a", "", []byte("content"), client.Delivery{}); err != nil {
		t.Errorf("an upload with the token: %v", err)
	}
	wantStatus(t, "the account for the token", failed(program.Account(ctx)), 403)
	all, err := device.Tokens(ctx)
	if err != nil ||
		len(all) != 2 ||
		all[0].ID != made.ID ||
		all[0].Token != "" ||
		all[0].Used.IsZero() ||
		!all[1].This {
		t.Errorf("the tokens are %+v, %v", all, err)
	}
	must(t, device.EndToken(ctx, made.ID))
	expect.Err(t, "ending it again", device.EndToken(ctx, made.ID), client.ErrNotFound)
	wantStatus(t, "with a wrong old password", device.ChangePassword(ctx, "wrong", "another password"), 403)
	must(t, device.ChangePassword(ctx, password, "another password"))
	expect.Err(t, "after the change", failed(device.Account(ctx)), client.ErrNoLogin)
	must(t, connect(t, s, "ann", func(o *client.Options) { o.Password = "another password" }).EndTokens(ctx))
}
