package envelope_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/envelope"
	"ferry/shared/fault"
)

const app = "https://app.example.com"

// ask sends a request to an endpoint below /v1, which pages of the origins may use.
func ask(
	t *testing.T,
	origins string,
	o envelope.Outlet,
	request string,
	headers ...string,
) *httptest.ResponseRecorder {
	t.Helper()
	allowed, err := envelope.ParseOrigins(origins)
	expect.NoErr(t, err)
	method, path, _ := strings.Cut(request, " ")
	r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
	for header := range slices.Chunk(headers, 2) {
		r.Header.Set(header[0], header[1])
	}
	allowed.Handler("/v1", handler(o, &strings.Builder{}, func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "no")
	})).ServeHTTP(w, r)
	return w
}

// preflight is what a browser asks before a page sends headers of its own.
func preflight(t *testing.T, origins, origin, headers string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(
		t,
		origins,
		envelope.Outlet{},
		"OPTIONS /v1/upload",
		"Origin",
		origin,
		"Access-Control-Request-Method",
		"PUT",
		"Access-Control-Request-Headers",
		headers,
	)
}

// TestAPreflightAllowsWhatIsAskedFor: Dropzone, Fine Uploader and tracing add headers of their own.
func TestAPreflightAllowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("x-a,", 63) + "x-b,x-c"
	for asked, want := range map[string]string{
		"cache-control, x-requested-with": "cache-control, x-requested-with", "authorization,traceparent,baggage": "authorization, traceparent, baggage",
		"": "", "x y,x\tz,\"q\",ä,(,,ok": "ok", many: strings.ReplaceAll(strings.TrimSuffix(many, ",x-c"), ",", ", "),
	} {
		w := preflight(t, app, app, asked)
		if got := w.Header().Get("Access-Control-Allow-Headers"); w.Code != 204 ||
			got != want ||
			w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: status %d, %q", asked, w.Code, got)
		}
	}
}

// TestOriginsHoldForTheServicesPathsAlone: the inbox shows links and PINs of all users.
func TestOriginsHoldForTheServicesPathsAlone(t *testing.T) {
	t.Parallel()
	const table = `
		https://app.example.com | GET /v1/x     | https://app.example.com      | https://app.example.com | Origin
		https://app.example.com | GET /v1/x     | https://evil.example.com     |                         | Origin
		https://app.example.com | GET /v1/x     | http://app.example.com       |                         | Origin
		https://app.example.com | GET /v1/x     | https://app.example.com:8443 |                         | Origin
		https://app.example.com | GET /v1/x     | https://app.example.com.evil |                         | Origin
		https://app.example.com | GET /v1/x     | https://xapp.example.com     |                         | Origin
		https://app.example.com | GET /v1/x     | https://app.example.com/     |                         | Origin
		https://app.example.com | GET /v1/x     | null                         |                         | Origin
		https://app.example.com | GET /v1/x     |                              |                         | Origin
		https://app.example.com | OPTIONS /v1/x | https://app.example.com      | https://app.example.com | Origin
		https://app.example.com | GET /inbox    | https://app.example.com      |                         |
		https://app.example.com | GET /v1x      | https://app.example.com      |                         |
		*                       | GET /v1/x     | https://app.example.com      | *                       |
		*                       | GET /v1/x     |                              |                         |
		*                       | GET /         | https://app.example.com      |                         |
		                        | GET /v1/x     | https://app.example.com      |                         |`
	for _, cells := range rowsOf(table) {
		w := ask(t, cells[0], envelope.Outlet{}, cells[1], "Origin", cells[2])
		h := w.Header()
		exposes := strings.Contains(h.Get("Access-Control-Expose-Headers"), "Ferry-Error") // also of an error, as this one
		if h.Get("Access-Control-Allow-Origin") != cells[3] ||
			h.Get("Vary") != cells[4] ||
			exposes != (cells[3] != "") ||
			w.Code != 404 {
			t.Errorf("%q: status %d, %v", cells, w.Code, h)
		}
		if w := preflight(t, cells[0], cells[2], ""); cells[1] == "GET /v1/x" && (w.Code == 204) != (cells[3] != "") {
			t.Errorf("%q: a preflight has status %d", cells, w.Code)
		}
	}
}

// rowsOf returns the cells of a table.
func rowsOf(table string) (rows [][]string) {
	for line := range strings.SplitSeq(strings.TrimPrefix(table, "\n"), "\n") {
		rows = append(rows, regexp.MustCompile(`\s*\|\s*`).Split(strings.TrimPrefix(line, "\t\t"), -1))
	}
	return rows
}

// TestPageOfAnotherSiteChangesNothing: a browser adds the password that it knows for the service.
func TestPageOfAnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	const table = `
		passes  | a program                          |                         |                           |
		refused | another site                       | https://app.example.com | https://evil.example.com  | cross-site
		refused | another site, in an old browser    | https://app.example.com | https://evil.example.com  |
		refused | a neighbour                        | https://app.example.com | https://other.example.com | same-site
		refused | a sandboxed page                   | https://app.example.com | null                      | cross-site
		passes  | an origin that CORS allows         | https://app.example.com | https://app.example.com   | cross-site
		refused | that origin, if none are allowed   |                         | https://app.example.com   | cross-site
		passes  | any origin, if all are allowed     | *                       | https://evil.example.com  | cross-site
		passes  | its own page                       |                         | https://files.example.com | same-origin
		passes  | its own page, in an old browser    |                         | https://files.example.com |
		passes  | its own page without a referrer    |                         | null                      | same-origin
		refused | its own page without https         |                         | http://files.example.com  |
		passes  | a person who types                 |                         |                           | none`
	o := envelope.Outlet{Base: func(context.Context) string { return "https://files.example.com/v1" }}
	for _, cells := range rowsOf(table) {
		var headers []string
		for i, name := range []string{"Origin", "Sec-Fetch-Site"} {
			if value := cells[3+i]; value != "" {
				headers = append(headers, name, value)
			}
		}
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			if w := ask(t, cells[2], o, method+" /v1/x", headers...); (w.Code == 403) != (cells[0] == "refused") {
				t.Errorf("%s of %s: status %d", method, cells[1], w.Code)
			}
		}
		read := ask(t, cells[2], o, "GET /v1/x", headers...)
		free := ask(t, cells[2], envelope.Outlet{Base: o.Base, AnySite: true}, "POST /v1/x", headers...)
		if read.Code != 404 || free.Code != 404 {
			t.Errorf("%s: to read has status %d, and to change what the address allows %d",
				cells[1], read.Code, free.Code)
		}
	}
}

func TestAnotherSiteIsRefusedByEachEndpointBeforeItDoesAnything(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.Calls.Reset()
	for _, request := range []string{
		"POST /upload?file=x", "PUT /upload?file=x", "POST /uploads", "DELETE /files/1", "POST /auth/login", "POST /auth/change", "POST /oauth2/token",
		"POST /files/1/restore",
	} {
		login := apitest.Basic("ann", apitest.Password)
		c.Send(
			request,
			"",
			"Authorization",
			login,
			"Origin",
			"https://evil.example.com",
			"Sec-Fetch-Site",
			"cross-site",
		).
			Want(403, "another site")
	}
	if calls := c.Calls.Reset(); len(calls) > 0 {
		t.Errorf("they cost %v", calls)
	}
	c.Send("POST /notifications/stop?t=x", "", "Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site").
		Want(401)
}

func TestOriginsAreReadAsBrowsersWriteThem(t *testing.T) {
	t.Parallel()
	for text, origin := range map[string]string{
		"https://APP.example.com/": app, "https://app.example.com:443": app, " , https://other.example.com, https://app.example.com ,": app,
		"http://127.0.0.1:80": "http://127.0.0.1", "http://[::1]:5173": "http://[::1]:5173", "capacitor://localhost": "capacitor://localhost",
		"http://localhost:443": "http://localhost:443",
	} {
		if got := ask(
			t,
			text,
			envelope.Outlet{},
			"GET /v1/x",
			"Origin",
			origin,
		).Header().Get("Access-Control-Allow-Origin"); got != origin {
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
	for _, text := range []string{
		app, "*", "https://a:443,http://[::1]:80, *", "https://a b", "https://a\r\nX: y", "https://*.a", "https://a:",
		"https://a:0443", "https://ä", "https://[::1", "HTTPS://A/", "https://a@b", "A://::",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := envelope.ParseOrigins(text)
		if err != nil {
			return
		}
		for _, origin := range o {
			u, err := url.Parse(origin)
			if origin != "*" &&
				(err != nil ||
					u.Host == "" ||
					u.User != nil ||
					u.Path+u.RawQuery+u.Fragment != "" ||
					strings.HasSuffix(u.Host, ":") ||
					u.Scheme == "https" && u.Port() == "443" ||
					u.Scheme == "http" && u.Port() == "80" ||
					strings.ToLower(origin) != origin ||
					strings.ContainsFunc(origin, func(r rune) bool {
						return r <= ' ' || r > '~' || r == '*' || r == ','
					})) {
				t.Errorf("%q is read as %q", text, origin)
			}
			if again, err := envelope.ParseOrigins(origin); err != nil || len(again) != 1 || again[0] != origin {
				t.Errorf("%q is read as %q, and then as %q, %v", text, origin, again, err)
			}
		}
	})
}
