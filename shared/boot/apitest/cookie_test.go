package apitest_test

import (
	"net/http"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/identity"
	"ferry/shared/service"
)

// allowed is an origin whose pages CORS lets in.
const allowed = "https://app.example.com"

// browser is a service that pages of another origin may use, and the cookie of ann's browser.
func browser(t *testing.T, options ...apitest.Option) (s *apitest.Server, cookie string) {
	t.Helper()
	origins, err := envelope.ParseOrigins(allowed)
	expect.NoErr(t, err)
	s = apitest.Open(t, t.TempDir(), append(options, func(_ *service.Settings, o *local.ServiceOptions) {
		o.Origins = origins
	})...)
	s.AddUser("ann", apitest.Password)
	u, err := s.Users.Get(t.Context(), "ann")
	expect.NoErr(t, err)
	token, _, err := s.Service.Tokens().Make(t.Context(), u, identity.APIToken{
		Name:  "browser",
		Scope: identity.ScopeAccount,
	})
	expect.NoErr(t, err)
	return s, "ferry=" + token
}

// needLogin returns the requests that need a login, the one that ends all logins last.
func needLogin() (all []string) {
	const end = "DELETE /tokens"
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			if request := r.Method + " " + r.Path; r.Needs != "" && request != end {
				all = append(all, strings.NewReplacer("{id}", "1", "{name}", "a", "{n}", "own").Replace(request))
			}
		}
	}
	return append(all, end)
}

// TestACookieIsALoginOnEachRoute: whoever may read it sends it with a request to change something
// only from the service's own pages, whatever CORS allows.
func TestACookieIsALoginOnEachRoute(t *testing.T) {
	t.Parallel()
	s, cookie := browser(t)
	refused := func(a apitest.Answer) bool { return a.Code == 401 || a.Code == 403 }
	send := func(request string, headers ...string) apitest.Answer {
		t.Helper()
		a := s.Send(request, "", append(headers, "Cookie", cookie)...)
		if got := a.Header.Get("Access-Control-Allow-Credentials"); got != "" {
			t.Errorf("%s %v: Access-Control-Allow-Credentials is %q", request, headers, got)
		}
		return a
	}
	for _, request := range needLogin() {
		method, path, _ := strings.Cut(request, " ")
		safe := method == http.MethodGet || method == http.MethodHead
		for _, from := range [][]string{
			{}, {"Origin", "null"}, {"Origin", allowed}, {
				"Origin", s.Root, "Sec-Fetch-Site", "same-site",
			}, {"Sec-Fetch-Site", "none"},
		} {
			if a := send(request, from...); refused(a) == safe || !safe && a.Code != 403 {
				t.Errorf("%s from %v: status %d (%s)", request, from, a.Code, a.Header.Get("Ferry-Error"))
			}
		}
		if a := send(request, "Authorization", "Bearer wrong", "Sec-Fetch-Site", "same-origin"); a.Code != 401 {
			t.Errorf("%s with another login in its header: status %d", request, a.Code)
		}
		resp := s.Request("OPTIONS", path, nil, "Origin", allowed, "Access-Control-Request-Method", method)
		if got := resp.Header["Access-Control-Allow-Credentials"]; got != nil ||
			resp.Header.Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("the preflight of %s gets %v", request, resp.Header)
		}
	}
	for _, request := range needLogin() {
		for _, from := range [][]string{{"Origin", s.Root}, {"Sec-Fetch-Site", "same-origin"}} {
			if a := send(request, from...); refused(a) && (request != "DELETE /tokens" || from[0] == "Origin") {
				t.Errorf("%s from %v: status %d (%s)", request, from, a.Code, a.Header.Get("Ferry-Error"))
			}
		}
	}
}

// TestACookieIsNoLoginWhereOthersCouldReadIt: it would travel without https.
func TestACookieIsNoLoginWhereOthersCouldReadIt(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		s, cookie := browser(t, func(set *service.Settings, _ *local.ServiceOptions) {
			set.PublicURL, set.PlainLogin = "http://files.example.com/v1", plain
		})
		want := map[bool]int{false: 401, true: 200}[plain]
		s.Send("GET "+s.Root+"/v1/me", "", "Cookie", cookie).Want(want)
	}
}

// TestPagesAreForNoOtherOrigin: CORS is for the interface.
func TestPagesAreForNoOtherOrigin(t *testing.T) {
	t.Parallel()
	s, cookie := browser(t)
	for _, path := range []string{"/login", "/files", "/nothing", "/inbox", "/static/x/style.css"} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.Root+path, nil)
			expect.NoErr(t, err)
			r.Header = http.Header{
				"Origin":                        {allowed},
				"Cookie":                        {cookie},
				"Access-Control-Request-Method": {"GET"},
				"Accept":                        {"text/html"},
			}
			for name, values := range s.Do(r).Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: %s is %v", method, path, name, values)
				}
			}
		}
	}
}
