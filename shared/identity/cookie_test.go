package identity_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/identity"
)

func TestACookieIsOnlyForItsService(t *testing.T) {
	t.Parallel()
	const open = "; Max-Age=2592000; HttpOnly; SameSite=Lax"
	const secure = "; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax"
	for base, want := range map[string]struct {
		cookie string
		safe   bool // browsers can log in
	}{
		"https://files.example.com:8443/v1": {"__Host-ferry=token; Path=/" + secure, true},
		"https://example.com/ferry/v1":      {"__Secure-ferry=token; Path=/ferry" + secure, true},
		"https://example.com/team%20a/v1":   {"__Secure-ferry=token; Path=/team%20a" + secure, true},
		"http://127.0.0.1:8080/v1":          {"ferry=token; Path=/" + open, true},
		"http://[::1]:8080/v1":              {"ferry=token; Path=/" + open, true},
		"http://localhost/ferry/v1":         {"ferry=token; Path=/ferry/" + open, true},
		"http://files.example.com/v1":       {"ferry=token; Path=/" + open, false},
		"http://localhost.example.com/v1":   {"ferry=token; Path=/" + open, false},
		"http://192.168.1.5/v1":             {"ferry=token; Path=/" + open, false},
	} {
		c, safe := identity.CookieOf(base, false)
		expect.Equal(t, base+" is safe", safe, want.safe)
		_, allowed := identity.CookieOf(base, true)
		expect.Equal(t, base+" is allowed", allowed, true)
		expect.Equal(t, base, c.Set("token").String(), want.cookie)
		guests := strings.Replace(want.cookie, "ferry", "Ferry-Guest", 1)
		expect.Equal(t, "a guest's at "+base, c.For("Ferry-Guest").Set("token").String(), guests)
		ended := strings.NewReplacer("token", "", "2592000", "0").Replace(want.cookie)
		expect.Equal(t, "the end at "+base, c.Set("").String(), ended)
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
		read := func(cookies string) (identity.Credential, error) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/me", nil)
			r.Header.Set("Cookie", cookies)
			return c.Read(r)
		}
		got, err := read("Ferry-Guest=x; " + name + "=token")
		want := identity.Credential{Kind: identity.Bearer, Bearer: "token", Source: "192.0.2.1"}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", base, got, err)
		}
		others := slices.DeleteFunc([]string{"__Host-ferry", "__Secure-ferry", "ferry", "Ferry", "__host-ferry"},
			func(other string) bool { return other == name })
		got, err = read(name + "=; " + strings.Join(others, "=x; ") + "=x")
		if err != nil || got.Kind != identity.None {
			t.Errorf("%s, with other cookies: %+v, %v", base, got, err)
		}
		_, err = read(name + "=evil; " + name + "=token")
		expect.Fault(t, "a second cookie, which a neighbour has set", err, fault.Forbidden)
	}
}

func TestOnlyTheServicesOwnPagesChangeSomethingWithACookie(t *testing.T) {
	t.Parallel()
	for from, allowed := range map[string]bool{ // Sec-Fetch-Site and Origin
		"same-origin https://files.example.com": true,
		"same-origin ":                          true,
		" https://files.example.com":            true,
		" ":                                     false,
		"none ":                                 false,
		"none https://files.example.com":        false,
		"same-site https://other.example.com":   false,
		"same-site https://files.example.com":   false,
		"cross-site https://files.example.com":  false,
		" https://evil.example":                 false,
		" https://other.example.com":            false,
		" http://files.example.com":             false,
		" https://files.example.com:8443":       false,
		" https://files.example.com.evil.org":   false,
		" null":                                 false,
	} {
		site, origin, _ := strings.Cut(from, " ")
		for _, base := range []string{"https://Files.Example.com/v1", "https://files.example.com/ferry/v1"} {
			cookie, _ := identity.CookieOf(base, false)
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "get"} {
				r := httptest.NewRequestWithContext(t.Context(), method, "/v1/me", nil)
				r.Header = http.Header{"Sec-Fetch-Site": {site}, "Origin": {origin}, "Cookie": {cookie.Name + "=token"}}
				may := allowed || method == "GET" || method == "HEAD"
				if _, err := cookie.Read(r); (err == nil) != may || err != nil && !fault.Is(err, fault.Forbidden) {
					t.Errorf("%s to %s from %q: %v", method, base, from, err)
				}
			}
		}
	}
}
