package identity_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/identity"
)

func TestACookieIsOnlyForItsService(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]struct {
		name, path   string
		secure, safe bool // safe: browsers can log in
	}{
		"https://files.example.com/v1":         {"__Host-ferry", "/", true, true},
		"https://files.example.com:8443/v1":    {"__Host-ferry", "/", true, true},
		"https://example.com/ferry/v1":         {"__Secure-ferry", "/ferry", true, true},
		"https://example.com/a/b/v1":           {"__Secure-ferry", "/a/b", true, true},
		"https://example.com/team%20a/v1":      {"__Secure-ferry", "/team%20a", true, true},
		"http://127.0.0.1:8080/v1":             {"ferry", "/", false, true},
		"http://127.9.9.9/v1":                  {"ferry", "/", false, true},
		"http://[::1]:8080/v1":                 {"ferry", "/", false, true},
		"http://localhost/v1":                  {"ferry", "/", false, true},
		"http://localhost/ferry/v1":            {"ferry", "/ferry/", false, true},
		"http://files.example.com/v1":          {"ferry", "/", false, false},
		"http://192.168.1.5:8080/v1":           {"ferry", "/", false, false},
		"http://localhost.example.com:8080/v1": {"ferry", "/", false, false},
		"http://127.0.0.1.example.com/v1":      {"ferry", "/", false, false},
	} {
		for _, plain := range []bool{false, true} {
			c, ok := identity.CookieOf(base, plain)
			if c.Name != want.name || c.Path != want.path || c.Secure != want.secure || ok != (want.safe || plain) {
				t.Errorf("%s, without https allowed %v: %+v, %v", base, plain, c, ok)
			}
			set := c.Set("token")
			if set.Name != c.Name || set.Path != c.Path || set.Secure != c.Secure || set.Domain != "" || !set.HttpOnly ||
				set.SameSite != http.SameSiteLaxMode || set.MaxAge != 30*24*60*60 || set.Value != "token" {
				t.Errorf("%s: the cookie is %s", base, set)
			}
			guests := c.For("Ferry-Guest").Set("token")
			if set.Name = strings.Replace(want.name, "ferry", "Ferry-Guest", 1); guests.String() != set.String() {
				t.Errorf("%s: a guest's is %s", base, guests)
			}
			if ended := c.Set(""); ended.MaxAge >= 0 || ended.Path != c.Path || ended.Secure != c.Secure {
				t.Errorf("%s: the cookie ends by %s", base, ended)
			}
		}
	}
	for _, base := range []string{"", "/v1", "://", "files.example.com/v1"} {
		if _, ok := identity.CookieOf(base, true); ok {
			t.Errorf("%q has a cookie", base)
		}
	}
}

func TestACookieIsReadByItsNameAlone(t *testing.T) {
	t.Parallel()
	for base, name := range map[string]string{
		"https://files.example.com/v1": "__Host-ferry", "https://example.com/ferry/v1": "__Secure-ferry", "http://127.0.0.1/v1": "ferry",
	} {
		c, _ := identity.CookieOf(base, false)
		for _, sent := range []string{"__Host-ferry", "__Secure-ferry", "ferry", "Ferry", "__host-ferry", "Ferry-Guest"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/me", nil)
			r.AddCookie(&http.Cookie{Name: sent, Value: "token"})
			got, err := c.Read(r)
			if err != nil || (got.Bearer == "token" && got.Kind == identity.Bearer) != (sent == name) || (got.Kind == identity.None) != (sent != name) {
				t.Errorf("%s, with %s: %+v, %v", base, sent, got, err)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/me", nil)
		r.AddCookie(&http.Cookie{Name: name})
		if got, err := c.Read(r); err != nil || got.Kind != identity.None {
			t.Errorf("%s, with an empty one: %+v, %v", base, got, err)
		}
		planted := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/me", nil)
		planted.Header.Set("Cookie", name+"=evil; "+name+"=token")
		_, err := c.Read(planted)
		expect.Fault(t, "a second cookie, which a neighbour has set", err, fault.Forbidden)
	}
}

func TestOnlyTheServicesOwnPagesChangeSomethingWithACookie(t *testing.T) {
	t.Parallel()
	const own = "https://files.example.com"
	for _, c := range []struct {
		site, origin string
		may          bool
	}{
		{"same-origin", own, true}, {"same-origin", "", true}, {"", own, true},
		{"", "", false}, {"none", "", false}, {"none", own, false},
		{"same-site", "https://other.example.com", false}, {"same-site", own, false}, {"cross-site", own, false},
		{"cross-site", "https://evil.example", false}, {"", "https://evil.example", false}, {"", "https://other.example.com", false},
		{"", "http://files.example.com", false}, {"", own + ":8443", false}, {"", own + ".evil.example", false}, {"", "null", false},
	} {
		for _, base := range []string{own + "/v1", "https://Files.Example.com/v1", own + "/ferry/v1"} {
			cookie, _ := identity.CookieOf(base, false)
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "get"} {
				r := httptest.NewRequestWithContext(t.Context(), method, "/v1/me", nil)
				r.Header = http.Header{"Sec-Fetch-Site": {c.site}, "Origin": {c.origin}, "Cookie": {cookie.Name + "=token"}}
				may := c.may || method == "GET" || method == "HEAD"
				if _, err := cookie.Read(r); (err == nil) != may || err != nil && !fault.Is(err, fault.Forbidden) {
					t.Errorf("%s to %s from %q, %q: %v", method, base, c.origin, c.site, err)
				}
			}
		}
	}
}
