package account_test

import (
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

// as returns the caller with another bearer.
func as(c apitest.Caller, bearer string) apitest.Caller {
	c.Bearer = bearer
	return c
}

// addToken makes a token, as JSON describes it.
func addToken(c apitest.Caller, json string) wire.Token {
	c.Helper()
	return apitest.Read[wire.Token](c.Ask("POST /tokens", json).Want(201))
}

func TestATokenIsShownOnceAndListedUntilItEnds(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.InProcess("its clock must stand still")
	made := addToken(c, `{"name":"host","scope":"login"}`)
	device := as(c, made.Token)
	device.Upload("file=a", "1")
	made.Token, made.This = "", true
	made.Used = made.Created
	list := apitest.Read[struct{ Tokens []wire.Token }](device.Ask("GET /tokens", "").Want(200))
	expect.Equal(t, "the list", list.Tokens, []wire.Token{made})
	c.Ask("DELETE /tokens/"+made.ID, "").Want(204)
	c.Ask("DELETE /tokens/"+made.ID, "").Want(404, "no such token")
	c.Ask("POST /tokens", `{"name":"a","scope":"upload","expires":"soon"}`).
		Want(400).
		WantHeaders("Ferry-Parameter", "expires")
}

// TestThePasswordIsChangedByWhoKnowsTheOldOne also sees that all logins and tokens end with it.
func TestThePasswordIsChangedByWhoKnowsTheOldOne(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	token := as(c, addToken(c, `{"name":"a","scope":"upload"}`).Token)
	c.Ask("POST /me/password", `{"old":"wrong","new":"another password"}`).Want(403, "old password")
	c.Ask("POST /me/password", `{"old":"a password to try","new":"short"}`).Want(400, "10 to 128")
	c.Ask("POST /me/password", `{"old":"a password to try","new":"another password"}`).Want(204)
	c.Ask("GET /uploads", "").Want(401)
	token.Ask("GET /uploads", "").Want(401)
	login(c.Server, "ann", "another password").Want(200)
}

func TestLoginsAndTokensOfProgramsEndApart(t *testing.T) {
	t.Parallel()
	for only, lives := range map[string]struct{ logins, program int }{
		"": {401, 401}, "?only=logins": {401, 200}, "?only=programs": {200, 401},
	} {
		c := apitest.Begin(t)
		device, program := as(
			c,
			addToken(c, `{"name":"x","scope":"login"}`).Token,
		), as(c, addToken(c, `{"name":"x","scope":"all"}`).Token)
		c.Ask("DELETE /tokens?only=others", "").Want(400, "the parameter only must be logins or programs")
		c.Ask("DELETE /tokens"+only, "").Want(204)
		c.Ask("GET /me", "").Want(lives.logins)
		device.Ask("GET /me", "").Want(lives.logins)
		program.Ask("GET /me", "").Want(lives.program)
		c.As("ann").Ask("DELETE /tokens"+only, "").Want(204) // and what is made later lives
	}
}
