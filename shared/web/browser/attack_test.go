package browser_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/web/browsertest"
)

// evilSite serves a page for each path of pages; its name is host, which is a neighbour of the service or
// another site.
func evilSite(t *testing.T, host string, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, pages[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", host, 1)
}

// TestNoOtherSiteCanUseALogin has pages of a neighbour, of another site, and of an origin that CORS allows post
// every form that changes something, and ask for what the login may see.
func TestNoOtherSiteCanUseALogin(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	forms := []struct {
		action, kind string
		fields       map[string]string
	}{
		{"account", "", map[string]string{"do": "token", "name": "evil", "scope": "all", "expires": ""}},
		{"account", "", map[string]string{"do": "password", "old": password, "new": "an evil password"}},
		{"account", "", map[string]string{"do": "all"}},
		{"logout", "", nil},
		{"v1/upload", "multipart/form-data", map[string]string{"text": "evil"}},
		{"v1/tokens", "text/plain", map[string]string{`{"name":"evil","scope":"all","expires":"`: `"}`}},
		{"v1/me/password", "text/plain", map[string]string{`{"old":"` + password + `","new":"an evil password","x":"`: `"}`}},
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		for _, allowed := range []bool{false, true} {
			t.Run(fmt.Sprint(host, ", allowed by CORS: ", allowed), func(t *testing.T) {
				t.Parallel()
				pages := map[string]string{}
				evil := evilSite(t, host, pages)
				s := apitest.New(t, func(_ *api.Settings, o *local.ServiceOptions) {
					if allowed {
						o.Origins = envelope.Origins{evil}
					}
				})
				s.AddUser("alice", password)
				b := browsertest.Open(t, s.Root, browsertest.Desk())
				b.Login("alice", password)
				b.Expect("CORS", "net::ERR_FAILED", "Cross-Origin")
				before := tokens(s)
				for i, f := range forms {
					var inputs strings.Builder
					for name, value := range f.fields {
						fmt.Fprintf(&inputs, `<input name="%s" value="%s">`, html.EscapeString(name), html.EscapeString(value))
					}
					path := fmt.Sprint("/", i)
					pages[path] = fmt.Sprintf(`<form method="post" action="%s/%s" enctype="%s">%s<button>x</button></form>`, s.Root, f.action, f.kind, &inputs)
					b.Visit(evil + path)
					b.Leave("button") // a 401 may be an error of the browser's own
					if text := b.Words(); strings.Contains(text, `"status":2`) {
						t.Errorf("%s leads to %s: %s", f.action, b.Address(), text)
					}
				}
				b.Visit(evil + "/nothing")
				for _, path := range []string{"/v1/me", "/v1/download/list", "/account"} {
					if got := b.Text(`fetch("` + s.Root + path + `", {credentials: "include"}).then(r => r.text()).catch(() => "")`); got != "" {
						t.Errorf("another site reads %s: %s", path, got)
					}
				}
				apitest.Equal(t, "tokens", tokens(s), before)
				s.As("alice").Ask("GET /download/list", "").Want(200)
				b.Visit("account")
				b.WaitFor("form[action=logout]")
			})
		}
	}
}

// tokens returns how many tokens alice has.
func tokens(s *apitest.Server) int {
	s.Helper()
	return strings.Count(s.As("alice").Ask("GET /tokens", "").Want(200).Text, `"id"`)
}

// TestNoPageCanBeFramed puts each page into a frame of another site.
func TestNoPageCanBeFramed(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Desk())
	link := s.As("alice").Upload("file=a", "a").LinkURL
	pages := map[string]string{}
	evil := evilSite(t, "localhost", pages)
	b.Login("alice", password)
	b.Expect("frame-ancestors")
	for i, address := range []string{s.Root + "/login", s.Root + "/account", s.Root + "/send", link, s.Root + "/nothing"} {
		path := fmt.Sprint("/", i)
		pages[path] = `<iframe src="` + html.EscapeString(address) + `"></iframe>`
		b.Visit(evil + path)
		if !apitest.Eventually(func() bool { return b.Hears("frame-ancestors") == i+1 }) {
			t.Errorf("%s was shown in a frame", strings.SplitN(address, "?", 2)[0])
		}
	}
}

// TestNoTokenLeavesTheService follows links out of a page with a token, and looks at what other sites get, at the
// title, at the log and at what the browser stores.
func TestNoTokenLeavesTheService(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	got := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Referer") }))
	t.Cleanup(other.Close)
	s := apitest.New(t, func(set *api.Settings, _ *local.ServiceOptions) { set.Look.Imprint = other.URL + "/imprint" })
	s.AddUser("alice", password)
	b := browsertest.Open(t, s.Root, browsertest.Desk())
	link := s.As("alice").Upload("file=a", "a").LinkURL
	_, token, _ := strings.Cut(link, "k=")
	b.Visit(link)
	kept := b.Text(`JSON.stringify([document.title, {...localStorage}, {...sessionStorage}, document.cookie])`)
	b.Press(`a[href^="` + other.URL + `"]`)
	if referer := <-got; strings.Contains(referer, token) {
		t.Errorf("another site gets the Referer %s", referer)
	}
	if strings.Contains(kept, token) {
		t.Errorf("the browser keeps %s", kept)
	}
	if strings.Contains(s.Log.String(), token) {
		t.Error("the log has the token")
	}
}
