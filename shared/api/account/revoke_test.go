package account_test

import (
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

func TestRevokedBearerStopsWorking(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", "a password to try")
	bearer, other := s.Login("alice", "a password to try"), s.Login("alice", "a password to try")
	works := func(b string) int {
		return s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+b).StatusCode
	}
	revoke := func(form url.Values) {
		t.Helper()
		resp := s.Request("POST", "/oauth2/revoke", strings.NewReader(form.Encode()), "Content-Type", urlencoded)
		if body := s.Text(resp); resp.StatusCode != 200 || body != "" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("revoking: status %d, %q", resp.StatusCode, body)
		}
	}
	revoke(url.Values{"token": {"unknown"}})
	revoke(url.Values{"token": {bearer[:20]}, "token_type_hint": {"refresh_token"}})
	if got := works(bearer); got != 200 {
		t.Fatalf("the bearer before it is revoked: status %d", got)
	}
	revoke(url.Values{"token": {bearer}, "token_type_hint": {"access_token"}})
	revoke(url.Values{"token": {bearer}})
	if got := works(bearer); got != 401 {
		t.Errorf("the revoked bearer: status %d", got)
	}
	if got := works(other); got != 200 {
		t.Errorf("another bearer of the user: status %d", got)
	}
}

func TestRevokingNeedsAToken(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, c := range []struct {
		what, kind, body string
		status           int
	}{
		{"no token", urlencoded, "x=y", 400},
		{"an empty token", urlencoded, "token=", 400},
		{"no form", "application/json", `{"token":"x"}`, 400},
		{"a long form", urlencoded, "token=" + strings.Repeat("x", 16<<10), 413},
	} {
		resp := s.Request("POST", "/oauth2/revoke?token=x", strings.NewReader(c.body), "Content-Type", c.kind)
		if s.Decode(resp, c.status); resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", c.what)
		}
	}
}
