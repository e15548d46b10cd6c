package account_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

const (
	escapedPassword = "a password & more"
	urlencoded      = "application/x-www-form-urlencoded"
)

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

func startToken(t *testing.T) *apitest.Server {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("alice", escapedPassword)
	s.AddUser("off", escapedPassword, func(u *auth.User) { u.State = auth.Disabled })
	return s
}

func TestPasswordGrant(t *testing.T) {
	t.Parallel()
	good := form("grant_type", "password", "username", "alice", "password", escapedPassword)
	for _, c := range []struct {
		what, kind, body string
		status           int
		says             string
	}{
		{"user and password", urlencoded, good, 200, ""},
		{"with a charset", urlencoded + ";charset=UTF-8", good, 200, ""},
		{"with a client id in the form", urlencoded, good + "&client_id=x&client_secret=y&scope=z", 200, ""},
		{"in capitals", urlencoded, form("grant_type", "password", "username", "ALICE", "password", escapedPassword), 200, ""},
		{"a wrong password", urlencoded, form("grant_type", "password", "username", "alice", "password", "x"), 401, "not valid"},
		{"an unknown user", urlencoded, form("grant_type", "password", "username", "nobody", "password", escapedPassword), 401, "not valid"},
		{"a disabled user", urlencoded, form("grant_type", "password", "username", "off", "password", escapedPassword), 401, "not valid"},
		{"no user", urlencoded, form("grant_type", "password", "password", escapedPassword), 400, "username"},
		{"no password", urlencoded, form("grant_type", "password", "username", "alice"), 400, "password"},
		{"no grant", urlencoded, form("username", "alice", "password", escapedPassword), 400, "grant_type"},
		{"another grant", urlencoded, form("grant_type", "client_credentials"), 400, "grant_type"},
		{"JSON", "application/json", `{"grant_type":"password"}`, 400, urlencoded},
		{"no type", "", good, 400, urlencoded},
		{"an empty form", urlencoded, "", 400, "grant_type"},
		{"a malformed form", urlencoded, "grant_type=%zz", 400, "form"},
		{"a form too long", urlencoded, good + "&x=" + strings.Repeat("x", 16<<10), 413, "larger"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := startToken(t)
			resp := s.Request("POST", "/oauth2/token", strings.NewReader(c.body), "Content-Type", c.kind)
			var body struct {
				AccessToken string `json:"access_token"`
				Error       int
			}
			must(t, json.Unmarshal([]byte(s.Text(resp)), &body))
			if resp.StatusCode != c.status || c.status != 200 && body.Error != c.status || !strings.Contains(resp.Header.Get("Ferry-Error"), c.says) {
				t.Fatalf("status %d, error %d, %q; want %d, %q", resp.StatusCode, body.Error, resp.Header.Get("Ferry-Error"), c.status, c.says)
			}
			if c.status == 200 {
				s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+body.AccessToken), 200)
			}
		})
	}
}

func TestClientsBasicHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	s := startToken(t)
	body := form("grant_type", "password", "username", "alice", "password", escapedPassword)
	for _, auth := range []string{apitest.Basic("client", "secret"), apitest.Basic("alice", "wrong"), "Basic !"} {
		resp := s.Request("POST", "/oauth2/token", strings.NewReader(body), "Content-Type", urlencoded, "Authorization", auth)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("with %q: status %d", auth, resp.StatusCode)
		}
	}
	for path, body := range map[string]string{"/oauth2/token": "grant_type=password", "/oauth2/token?" + body: ""} {
		resp := s.Request("POST", path, strings.NewReader(body), "Content-Type", urlencoded, "Authorization", apitest.Basic("alice", escapedPassword))
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a user in the header or the query instead of the form: status %d", resp.StatusCode)
		}
	}
}

func TestTooManyFailuresGetAnOAuthError(t *testing.T) {
	t.Parallel()
	s := startToken(t)
	s.Clock.Advance(0) // skips the test on a stack, which may take longer than the wait of a second
	for _, wrong := range []string{"a", "b", "c", "d", "e"} {
		s.Request("POST", "/oauth2/token", strings.NewReader(form("grant_type", "password", "username", "alice", "password", wrong)), "Content-Type", urlencoded)
	}
	resp := s.Request("POST", "/oauth2/token", strings.NewReader(form("grant_type", "password", "username", "alice", "password", escapedPassword)), "Content-Type", urlencoded)
	want := `{"error":429,"error_description":"Too Many Requests","error_uri":"` + s.Base + `"}` + "\n"
	if got := s.Text(resp); resp.StatusCode != 429 || got != want || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("status %d, %s, Retry-After %q", resp.StatusCode, got, resp.Header.Get("Retry-After"))
	}
}
