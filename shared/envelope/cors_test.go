package envelope_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/keys"
	"ferry/shared/service"
)

const (
	password = "a password to try"
	app      = "https://app.example.com"
)

// begin starts a service with these origins and the user alice.
func begin(t *testing.T, origins string) *apitest.Server {
	t.Helper()
	o, err := envelope.ParseOrigins(origins)
	must(t, err)
	s := apitest.New(t, func(_ *service.Settings, so *local.ServiceOptions) { so.Origins = o })
	s.AddUser("alice", password)
	return s
}

// preflight sends what a browser sends before a page's request.
func preflight(s *apitest.Server, path, origin, method string) *http.Response {
	s.Helper()
	return s.Request("OPTIONS", path, nil, "Origin", origin, "Access-Control-Request-Method", method,
		"Access-Control-Request-Headers", "authorization,content-type,idempotency-key,range,repr-digest,x-amz-checksum-crc64nvme")
}

// has reports whether a header's list has an entry, in any case.
func has(h http.Header, name, entry string) bool {
	for e := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(e), entry) {
			return true
		}
	}
	return false
}

func TestListedOriginPassesPreflight(t *testing.T) {
	t.Parallel()
	s := begin(t, "https://other.example.com, "+app)
	for path, method := range map[string]string{
		"/upload": "POST", "/files/1": "DELETE", "/download/list": "GET", "/download/file?k=x": "GET", "/oauth2/token": "POST",
	} {
		s.Calls.Reset()
		resp := preflight(s, path, app, method)
		h := resp.Header
		if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != app || h.Get("Access-Control-Max-Age") != "600" || !has(h, "Vary", "Origin") {
			t.Errorf("%s: status %d, %v", path, resp.StatusCode, h)
		}
		if !has(h, "Access-Control-Allow-Methods", method) || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", path, h)
		}
		if calls := s.Calls.Reset(); len(calls) > 0 {
			t.Errorf("%s: a preflight costs %v", path, calls)
		}
	}
}

// TestAPreflightAllowsWhatIsAskedFor: Dropzone, Fine Uploader and tracing add headers of their own.
func TestAPreflightAllowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := begin(t, app)
	many := strings.Repeat("x-a,", 63) + "x-b,x-c"
	for asked, want := range map[string]string{
		"cache-control, x-requested-with": "cache-control, x-requested-with", "authorization,traceparent,baggage": "authorization, traceparent, baggage",
		"": "", "x y,x\tz,\"q\",ä,(,,ok": "ok", many: strings.ReplaceAll(strings.TrimSuffix(many, ",x-c"), ",", ", "),
	} {
		resp := s.Request("OPTIONS", "/upload", nil, "Origin", app, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked)
		h := resp.Header
		if got := h.Get("Access-Control-Allow-Headers"); resp.StatusCode != 204 || got != want || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: status %d, %q", asked, resp.StatusCode, got)
		}
	}
}

func TestOtherOriginFailsPreflight(t *testing.T) {
	t.Parallel()
	s := begin(t, app)
	for _, origin := range []string{"https://evil.example.com", "http://app.example.com", app + ":8443", app + ".evil.com", "https://xapp.example.com", "null", app + "/"} {
		resp := preflight(s, "/upload", origin, "POST")
		wantNoCORS(t, origin, resp.Header)
		resp = s.Request("GET", "/health", nil, "Origin", origin)
		wantNoCORS(t, origin, resp.Header)
		if resp.StatusCode != 200 || !has(resp.Header, "Vary", "Origin") {
			t.Errorf("%s: status %d, %v", origin, resp.StatusCode, resp.Header)
		}
	}
}

func wantNoCORS(t *testing.T, what string, h http.Header) {
	t.Helper()
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s is %q", what, name, h.Get(name))
		}
	}
}

// TestOriginsHoldForTheServicesPathsAlone is about none and all. The inbox shows links and PINs of all users.
func TestOriginsHoldForTheServicesPathsAlone(t *testing.T) {
	t.Parallel()
	for origins, want := range map[string]string{"": "", "*": "*"} {
		s := begin(t, origins)
		for _, resp := range []*http.Response{preflight(s, "/upload", app, "PUT"), s.Request("GET", "/health", nil, "Origin", app)} {
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want || has(resp.Header, "Vary", "Origin") {
				t.Errorf("%q: %s gets %v", origins, resp.Request.Method, resp.Header)
			}
		}
		wantNoCORS(t, "no origin", s.Request("GET", "/health", nil).Header)
		for _, path := range []string{"/inbox", "/", "/v1x"} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", s.Root+path, nil)
			must(t, err)
			r.Header.Set("Origin", app)
			wantNoCORS(t, path, s.Do(r).Header)
		}
	}
}

func TestPageCanReadAnswersAndErrors(t *testing.T) {
	t.Parallel()
	s := begin(t, app)
	auth := apitest.Basic("alice", password)
	file := s.As("alice").Upload("file=x", "content")
	for what, resp := range map[string]*http.Response{
		"a list":              s.Request("GET", "/download/list", nil, "Origin", app, "Authorization", auth),
		"a download":          s.Request("GET", strings.TrimPrefix(file.LinkURL, s.Base), nil, "Origin", app),
		"a refusal":           s.Request("GET", "/download/list", nil, "Origin", app),
		"an upload":           s.Request("PUT", "/upload?file=y", strings.NewReader("x"), "Origin", app, "Authorization", auth),
		"an unknown path":     s.Request("GET", "/nothing", nil, "Origin", app),
		"another method":      s.Request("DELETE", "/upload", nil, "Origin", app),
		"OPTIONS by the page": s.Request("OPTIONS", "/upload", nil, "Origin", app),
	} {
		h := resp.Header
		if h.Get("Access-Control-Allow-Origin") != app || !has(h, "Vary", "Origin") {
			t.Errorf("%s: %v", what, h)
		}
		for _, name := range []string{"ETag", "Ferry-Error", "Link", "Location", "Retry-After", "Content-Disposition", "Repr-Digest"} {
			if !has(h, "Access-Control-Expose-Headers", name) {
				t.Errorf("%s: %s is not exposed", what, name)
			}
		}
	}
}

// TestPageOfAnotherSiteChangesNothing sends requests as browsers do, with the password that they know for the service.
func TestPageOfAnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	const evil, own = "https://evil.example.com", "https://files.example.com"
	for _, k := range []struct {
		what, origins, origin, site string
		want                        bool
	}{
		{"a program", "", "", "", true},
		{"another site", app, evil, "cross-site", false},
		{"another site, in an old browser", app, evil, "", false},
		{"a neighbour", app, "https://other.example.com", "same-site", false},
		{"a sandboxed page", app, "null", "cross-site", false},
		{"an origin that CORS allows", app, app, "cross-site", true},
		{"that origin, if none are allowed", "", app, "cross-site", false},
		{"any origin, if all are allowed", "*", evil, "cross-site", true},
		{"its own page", "", own, "same-origin", true},
		{"its own page, in an old browser", "", own, "", true},
		{"its own page without a referrer", "", "null", "same-origin", true},
		{"its own page without https", "", "http://files.example.com", "", false},
		{"a person who types", "", "", "none", true},
	} {
		t.Run(k.what, func(t *testing.T) {
			t.Parallel()
			o, err := envelope.ParseOrigins(k.origins)
			must(t, err)
			s := apitest.New(t, func(set *service.Settings, so *local.ServiceOptions) { so.Origins, set.PublicURL = o, own+"/v1" })
			s.InProcess("it sets the service's address")
			s.AddUser("alice", password)
			stop := strings.TrimPrefix(keys.StopLink("", "en", s.Data.Ports.Key.Stop("ann@example.com")), own+"/v1")
			for _, r := range []struct {
				method, path, body string
				always             bool // even from another site
			}{
				{"POST", "/upload?file=x", "x", false}, {"PUT", "/upload?file=x", "x", false}, {"POST", "/uploads", `{"name":"x","length":5}`, false},
				{"DELETE", "/files/1", "", false}, {"POST", "/auth/login", "", false}, {"POST", "/oauth2/token", "grant_type=password", false},
				{"POST", "/files/1/restore", "", false}, {"GET", "/download/list", "", true}, {"POST", stop, "List-Unsubscribe=One-Click", true},
			} {
				asked := httptest.NewRequestWithContext(t.Context(), r.method, "/v1"+r.path, strings.NewReader(r.body))
				asked.SetBasicAuth("alice", password)
				if r.body != "" && r.body[0] >= 'A' {
					asked.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				}
				if k.origin != "" && r.method != "GET" {
					asked.Header.Set("Origin", k.origin)
				}
				if k.site != "" {
					asked.Header.Set("Sec-Fetch-Site", k.site)
				}
				s.Calls.Reset()
				w := httptest.NewRecorder()
				s.HTTP.Config.Handler.ServeHTTP(w, asked)
				resp := w.Result()
				refused := resp.StatusCode == 403 && strings.Contains(resp.Header.Get("Ferry-Error"), "another site")
				if refused == (k.want || r.always) {
					t.Errorf("%s %s: status %d (%s)", r.method, r.path, resp.StatusCode, resp.Header.Get("Ferry-Error"))
				}
				if calls := s.Calls.Reset(); refused && len(calls) > 0 {
					t.Errorf("%s %s costs %v", r.method, r.path, calls)
				}
			}
		})
	}
}

func TestOriginsAreReadAsBrowsersWriteThem(t *testing.T) {
	t.Parallel()
	for text, origin := range map[string]string{
		"https://APP.example.com/": app, "https://app.example.com:443": app, " , https://app.example.com ,": app,
		"http://127.0.0.1:80": "http://127.0.0.1", "http://[::1]:5173": "http://[::1]:5173", "capacitor://localhost": "capacitor://localhost",
		"http://localhost:443": "http://localhost:443",
	} {
		o, err := envelope.ParseOrigins(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		r := httptest.NewRequest("GET", "/v1/health", nil)
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		o.Handler("/v1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") })).ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != origin || w.Body.String() != "x" {
			t.Errorf("%q allows %q, want %q", text, got, origin)
		}
	}
}

func TestMalformedOriginIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"app.example.com", "https://", "https://app.example.com/path", "https://app.example.com?x", "https://app.example.com#x",
		"https://user@app.example.com", "null", "https://*.example.com", "https://münchen.example", "://", app + ",nonsense",
	} {
		if o, err := envelope.ParseOrigins(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, o)
		}
	}
}

func FuzzAnOriginIsReadAsBrowsersWriteIt(f *testing.F) {
	for _, text := range []string{app, "*", "https://a:443,http://[::1]:80, *", "https://a b", "https://a\r\nX: y", "https://*.a", "https://a:", "https://a:0443", "https://ä", "https://[::1", "HTTPS://A/", "https://a@b", "A://::"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := envelope.ParseOrigins(text)
		if err != nil {
			return
		}
		for _, origin := range o {
			u, err := url.Parse(origin)
			if origin != "*" && (err != nil || u.Host == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" || strings.HasSuffix(u.Host, ":") ||
				u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" || strings.ToLower(origin) != origin ||
				strings.ContainsFunc(origin, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' || r == ',' })) {
				t.Errorf("%q is read as %q", text, origin)
			}
			if again, err := envelope.ParseOrigins(origin); err != nil || len(again) != 1 || again[0] != origin {
				t.Errorf("%q is read as %q, and then as %q, %v", text, origin, again, err)
			}
		}
	})
}
