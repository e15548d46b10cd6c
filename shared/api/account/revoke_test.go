package account_test

import (
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

func TestRevokedBearerStopsWorking(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	other := c.As("ann")
	for _, k := range []struct {
		form url.Values
		then int // the status of a request with the bearer
	}{
		{url.Values{"token": {"unknown"}}, 200},
		{url.Values{"token": {c.Bearer[:20]}, "token_type_hint": {"refresh_token"}}, 200},
		{url.Values{"token": {c.Bearer}, "token_type_hint": {"access_token"}}, 401},
		{url.Values{"token": {c.Bearer}}, 401},
	} {
		a := c.Send("POST /oauth2/revoke", k.form.Encode(), "Content-Type", urlencoded).Want(200)
		apitest.Equal(t, "the answer", a.Text+a.Header.Get("Cache-Control"), "no-store")
		c.Ask("GET /download/list", "").Want(k.then)
		other.Ask("GET /download/list", "").Want(200)
	}
}

func TestRevokingNeedsAToken(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{urlencoded, "x=y", 400}, {urlencoded, "token=", 400}, {"application/json", `{"token":"x"}`, 400},
		{urlencoded, "token=" + strings.Repeat("x", 16<<10), 413},
	} {
		s.Send("POST /oauth2/revoke?token=x", c.body, "Content-Type", c.kind).Want(c.status)
	}
}
