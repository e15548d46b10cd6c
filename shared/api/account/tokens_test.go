package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

func listTokens(c apitest.Caller) []wire.Token {
	c.Helper()
	return apitest.Read[struct{ Tokens []wire.Token }](c.Ask("GET /tokens", "").Want(200)).Tokens
}

func TestATokenIsShownOnceAndListedUntilItEnds(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.Calls.Reset()
	made := addToken(c, `{"name":"backup","scope":"all","expires":"2w"}`)
	expect.Equal(t, "the calls", c.Calls.Reset(), map[string]int{"table.GetMany": 1, "table.Query": 1, "table.Write": 1})
	mine := as(c, made.Token)
	mine.Upload("file=a", "1")
	list := listTokens(mine)
	if len(list) != 1 || list[0].ID != made.ID || list[0].Token != "" || !list[0].This || list[0].Used.IsZero() ||
		list[0].Expires.Sub(c.Clock.Now()).Round(time.Hour) != 14*24*time.Hour || list[0].Ends != list[0].Expires {
		t.Errorf("the list has %+v", list)
	}
	if text := c.Ask("GET /tokens", "").Want(200).Text; strings.Contains(text, "ferry_") || strings.Contains(text, `"this"`) {
		t.Errorf("the list is %s", text)
	}
	c.Ask("DELETE /tokens/"+made.ID, "").Want(204)
	mine.Ask("GET /download/list", "").Want(401)
	c.Ask("DELETE /tokens/"+made.ID, "").Want(404, "no such token")
	expect.Equal(t, "tokens that are left", len(listTokens(c)), 0)
}

func TestATokenIsRefusedWithTheParameterThatIsWrong(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	for body, parameter := range map[string]string{
		`{"scope":"all"}`: "name",
		`{"name":"a"}`:    "scope",
		`{"name":"a","scope":"upload","expires":"soon"}`: "expires",
		`{"name":"a","scope":"upload","expires":"0s"}`:   "expires",
		`{"name":"a","scope":"upload","expire":"7d"}`:    "",
		`{"name":"a","scope":"upload"`:                   "",
	} {
		a := c.Ask("POST /tokens", body).Want(400)
		expect.Equal(t, "the parameter of "+body, a.Header.Get("Ferry-Parameter"), parameter)
	}
	made := addToken(c, `{"name":"a","scope":"all"}`)
	as(c, made.Token).Ask("POST /tokens", `{"name":"b","scope":"upload"}`).Want(403, "API token")
}

// TestThePasswordIsChangedByWhoKnowsTheOldOne also sees that all logins and tokens end with it.
func TestThePasswordIsChangedByWhoKnowsTheOldOne(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	device := as(c, addToken(c, `{"name":"host","scope":"login"}`).Token)
	token := as(device, addToken(device, `{"name":"a","scope":"upload"}`).Token)
	token.Upload("file=a", "1")
	change := func(old, password string) apitest.Answer {
		return device.Ask("POST /me/password", fmt.Sprintf(`{"old":%q,"new":%q}`, old, password))
	}
	change("wrong", "another password").Want(403, "old password")
	change(apitest.Password, "short").Want(400, "10 to 128")
	wrong, most := 1, 5
	if c.InStack() {
		most = 100 // it may be so slow that the first tries are forgotten
	}
	last := change("wrong again", "another password")
	for ; last.Code == 403 && wrong < most; last = change(fmt.Sprint("wrong ", wrong), "another password") {
		wrong++
	}
	last.Want(429)
	if !c.InStack() {
		expect.Equal(t, "wrong passwords", wrong, most)
	}
	c.Clock.Advance(10 * time.Second)
	change(apitest.Password, "another password").Want(204)
	for _, caller := range []apitest.Caller{c, device, token} {
		caller.Ask("GET /uploads", "").Want(401)
	}
	login(c.Server, "ann", apitest.Password).Want(401)
	login(c.Server, "ann", "another password").Want(200)
}

func TestADeviceIsLoggedInByItsPassword(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	a := c.Send("POST /tokens", `{"name":"host","scope":"login"}`, "Authorization", apitest.Basic("ann", apitest.Password)).Want(201)
	device := as(c, apitest.Read[wire.Token](a).Token)
	c.Clock.Advance(80 * 24 * time.Hour)
	device.Upload("file=a", "1")
	c.Clock.Advance(80 * 24 * time.Hour)
	device.Upload("file=a", "1")
	device.Send("POST /oauth2/revoke", "token="+device.Bearer, "Content-Type", "application/x-www-form-urlencoded").Want(200)
	device.Ask("GET /me", "").Want(401)
}

func TestLoginsAndTokensOfProgramsEndApart(t *testing.T) {
	t.Parallel()
	for only, lives := range map[string]struct{ bearer, device, program int }{
		"": {401, 401, 401}, "?only=logins": {401, 401, 200}, "?only=programs": {200, 200, 401},
	} {
		c := apitest.Begin(t)
		device, program := addToken(c, `{"name":"x","scope":"login"}`).Token, addToken(c, `{"name":"x","scope":"all"}`).Token
		c.Ask("DELETE /tokens"+only, "").Want(204)
		for token, want := range map[string]int{c.Bearer: lives.bearer, device: lives.device, program: lives.program} {
			c.Send("GET /me", "", "Authorization", "Bearer "+token).Want(want)
		}
		again := c.As("ann") // and what is made later lives
		again.Ask("DELETE /tokens"+only, "").Want(204)
		for _, other := range []string{"others", ""} {
			c.As("ann").Ask("DELETE /tokens?only="+other, "").Want(400, "the parameter only must be logins or programs")
		}
	}
}
