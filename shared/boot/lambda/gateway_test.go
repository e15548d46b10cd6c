package lambda_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/openapi"
	"ferry/shared/users"
)

// load reads the event of a fixture, for a test to change.
func load(t testing.TB, name string) events.APIGatewayProxyRequest {
	t.Helper()
	var e events.APIGatewayProxyRequest
	boottest.Load(t, name).Decode(t, &e)
	return e
}

func TestARequestArrivesUnchanged(t *testing.T) {
	t.Parallel()
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	var got *http.Request
	var content []byte
	spy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		content, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	event := load(t, "upload")
	event.MultiValueHeaders["x-several"] = []string{"one, with a comma", "two"}
	event.MultiValueHeaders["cookie"] = []string{"session=4f1c; theme=dark"}
	event.MultiValueQueryStringParameters = map[string][]string{"tag": {"a&b=c", "100%", "#1 + ü"}}
	event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(binary), true
	if r := send(t, spy, boottest.Service(t, nil), event); r.StatusCode != http.StatusNoContent {
		t.Fatalf("status %d: %s", r.StatusCode, r.Body)
	}
	expect.Equal(t, "the header's values", got.Header.Values("X-Several"), []string{"one, with a comma", "two"})
	if c, err := got.Cookie("theme"); err != nil || c.Value != "dark" {
		t.Errorf("cookie %v, %v", c, err)
	}
	expect.Equal(t, "the query", got.URL.Query(), url.Values{"tag": {"a&b=c", "100%", "#1 + ü"}})
	if !bytes.Equal(content, binary) || got.ContentLength != int64(len(binary)) {
		t.Errorf("the body is %x of length %d", content, got.ContentLength)
	}
	expect.Equal(t, "the caller's address", got.RemoteAddr, "203.0.113.7")
}

// TestPagesOfOriginsThatTheGatewayAllowsMayChangeSomething sends events with the stage's variable.
func TestPagesOfOriginsThatTheGatewayAllowsMayChangeSomething(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	h := (&api.Ports{Service: p}).Outlet().Handler(func(http.ResponseWriter, *http.Request) error { return nil })
	const evil, app = "https://evil.example.com", "https://app.example.com"
	for _, c := range []struct {
		stage, origin string
		want          int
	}{
		{
			origin: evil,
			want:   403,
		}, {stage: "https://a.example.com," + app, origin: app, want: 200}, {stage: "any", origin: evil, want: 200},
		{
			origin: "https://a1b2c3d4e5.execute-api.eu-south-1.amazonaws.com",
			want:   200,
		}, {stage: "malformed", origin: "null", want: 403},
	} {
		event := load(t, "upload")
		event.StageVariables = map[string]string{"corsOrigins": c.stage}
		event.MultiValueHeaders["origin"], event.MultiValueHeaders["sec-fetch-site"] = []string{c.origin}, []string{"cross-site"}
		if r := send(t, h, p, event); r.StatusCode != c.want {
			t.Errorf("a page of %q, where %q is allowed, gets %d", c.origin, c.stage, r.StatusCode)
		}
	}
}

// TestOnlyTheStagesProxyTellsWhoItsClientIs sends events through CloudFront and past it. A
// refused request is logged with the client's address too.
func TestOnlyTheStagesProxyTellsWhoItsClientIs(t *testing.T) {
	t.Parallel()
	stage := map[string]string{
		"clientHeader": "X-Forwarded-For/2", "proxySecret": fmt.Sprintf("X-Proxy:%x",
			sha256.Sum256([]byte("open sesame"))),
	}
	for name, c := range map[string]struct {
		stage   map[string]string
		want    string
		refused bool
	}{
		"through it":                {stage: stage, want: "198.51.100.10"},
		"through it, and refused":   {stage: stage, want: "198.51.100.10", refused: true},
		"past it":                   {want: "203.0.113.7"},
		"with a malformed variable": {stage: map[string]string{"clientHeader": "X-Forwarded-For"}, want: "203.0.113.7"},
	} {
		var log bytes.Buffer
		p := boottest.Service(t, nil)
		p.Log = slog.New(slog.NewJSONHandler(&log, nil))
		event := load(t, "upload")
		event.StageVariables = c.stage
		event.MultiValueHeaders["X-Proxy"] = []string{"open sesame"}
		event.MultiValueHeaders["X-Forwarded-For"] = []string{"6.6.6.6, 198.51.100.10, 203.0.113.7"}
		if c.refused {
			event.Body, event.IsBase64Encoded = "\ufffd", false
		}
		send(t, (&api.Ports{Service: p}).Outlet().Handler(func(http.ResponseWriter, *http.Request) error {
			return nil
		}), p, event)
		if !strings.Contains(log.String(), `"address":"`+c.want+`"`) {
			t.Errorf("%s: the log is %s, want %s", name, log.String(), c.want)
		}
		if strings.Contains(log.String(), "sesame") || strings.Contains(log.String(), "6.6.6.6") {
			t.Errorf("the log shows a header: %s", log.String())
		}
	}
}

func TestAPathArrivesDecodedOnce(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	for _, path := range []string{
		"/v1/100%", "/v1/100%25", "/v1/a b", "/v1/a+b", "/v1/a#b", "/v1/a?k=b", "/v1/Łódź", "/v1/\x01\n", "/v1//x", "/v1/a;b", "/v1/../x", "v1/x", "*", "",
	} {
		var got string
		spy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.URL.Path
			if r.URL.Query().Get("k") != "token" || len(r.URL.Query()) != 1 {
				t.Errorf("%q: the query is %q", path, r.URL.RawQuery)
			}
			w.WriteHeader(http.StatusNoContent)
		})
		event := load(t, "downloadfile")
		event.Path = path
		event.MultiValueQueryStringParameters = map[string][]string{"k": {"token"}}
		expect.Equal(t, path, send(t, spy, p, event).StatusCode, http.StatusNoContent)
		if want := "/" + strings.TrimPrefix(path, "/"); got != want {
			t.Errorf("the path %q arrives as %q", path, got)
		}
	}
}

func TestTheFunctionAlwaysAnswers(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	through := func(f func(http.ResponseWriter) error) http.Handler {
		return (&api.Ports{Service: p}).Outlet().Handler(func(w http.ResponseWriter, _ *http.Request) error {
			return f(w)
		})
	}
	plain := func(f func(http.ResponseWriter)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { f(w) })
	}
	envelope := regexp.MustCompile(`^\{"status":500,"description":"Internal Server Error","apiver":"v1 \(3\.6\.0\)","time":"[^"]+"\}\n$`)
	for name, c := range map[string]struct {
		handler http.Handler
		status  int
	}{
		"a panic outside the envelope": {plain(func(http.ResponseWriter) { panic("secret") }), 500},
		"a panic in a response": {through(func(w http.ResponseWriter) error {
			io.WriteString(w, "secret")
			panic("secret")
		}), 500},
		"nothing written":                      {through(func(http.ResponseWriter) error { return nil }), 200},
		"nothing written outside the envelope": {plain(func(http.ResponseWriter) {}), 500},
		"only headers": {through(func(w http.ResponseWriter) error {
			w.WriteHeader(204)
			return nil
		}), 204},
	} {
		r := send(t, c.handler, p, load(t, "health"))
		if r.StatusCode != c.status ||
			c.status == 500 && !envelope.MatchString(r.Body) ||
			c.status != 500 && r.Body != "" {
			t.Errorf("%s: status %d, want %d: %q", name, r.StatusCode, c.status, r.Body)
		}
	}
}

// TestAPartSentToTheGatewayIsNotFound: no function has the route on which `ferry serve` takes parts.
func TestAPartSentToTheGatewayIsNotFound(t *testing.T) {
	t.Parallel()
	event := load(t, "notfound")
	event.HTTPMethod, event.Path = http.MethodPut, "/v1/uploads/1-x/parts/1"
	r := call(t, named(t, "notfound"), boottest.Service(t, nil), event)
	if r.StatusCode != http.StatusNotFound || len(r.MultiValueHeaders["Allow"]) != 0 {
		t.Errorf("status %d, %v", r.StatusCode, r.MultiValueHeaders)
	}
}

func TestAnEventThatIsNotARequestIsAnswered(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	for name, change := range map[string]func(*events.APIGatewayProxyRequest){
		"an invalid method":         func(e *events.APIGatewayProxyRequest) { e.HTTPMethod = "GE T" },
		"a body that is not base64": func(e *events.APIGatewayProxyRequest) { e.Body, e.IsBase64Encoded = "%%%", true },
	} {
		event := load(t, "health")
		change(&event)
		if r := call(t, named(t, "health"), p, event); r.StatusCode != 500 ||
			!strings.Contains(r.Body, `"status":500`) {
			t.Errorf("%s: status %d: %s", name, r.StatusCode, r.Body)
		}
	}
}

func TestAnyBytesFitIntoALambdaResponse(t *testing.T) {
	t.Parallel()
	const limit = 6 << 20 // bytes, of Lambda
	p := boottest.Service(t, nil)
	for name, unit := range map[string]string{"zeros": "\x00", "markup": "<&>", "text": "text ", "binary": "\xff\xfe"} {
		want := strings.Repeat(unit, (4<<20)/len(unit))
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, want) })
		r := send(t, h, p, load(t, "downloadfile"))
		encoded, err := json.Marshal(r)
		if err != nil || len(encoded) > limit || string(body(t, r)) != want {
			t.Errorf("%s: the response has %d bytes, %v, or the body differs", name, len(encoded), err)
		}
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	event := load(t, "downloadfile")
	event.HTTPMethod = http.MethodHead
	for _, status := range []int{200, 401} {
		r := call(t, named(t, "downloadfile"), p, event)
		if r.StatusCode != status ||
			r.Body != "" ||
			r.IsBase64Encoded ||
			status == 200 && r.MultiValueHeaders["Content-Length"][0] != "16" {
			t.Errorf("status %d, headers %v, the body %q", r.StatusCode, r.MultiValueHeaders, r.Body)
		}
		event.MultiValueQueryStringParameters["k"] = []string{"unknown"}
	}
}

func TestTextThatTheGatewayDamagedIsRefused(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	for _, c := range []struct {
		name   string
		body   string
		length string // as sent; empty for a body in chunks
		status int
	}{
		{name: "UTF-8", body: "Grüße\n", length: "8", status: 200},
		{name: "UTF-8 with a replacement character of its own", body: "a\ufffdb", length: "5", status: 200},
		{name: "UTF-8 in chunks", body: "Grüße\n", status: 200},
		{name: "Latin-1 that the gateway has replaced", body: "Gr\ufffd\ufffde\n", length: "6", status: 415},
		{name: "Latin-1 that the gateway has converted", body: "Grüße\n", length: "6", status: 415},
		{name: "Latin-1 in chunks", body: "Gr\ufffd\ufffde\n", status: 415},
		{name: "a name in Latin-1 that the gateway has replaced: \ufffd", body: "a", length: "1", status: 400},
	} {
		event := load(t, "upload")
		event.MultiValueQueryStringParameters = map[string][]string{"file": {c.name}}
		event.MultiValueHeaders["Content-Type"], event.MultiValueHeaders["Content-Length"] = []string{"text/plain"}, []string{c.length}
		event.Body, event.IsBase64Encoded = c.body, false
		expect.Equal(t, c.name, call(t, named(t, "upload"), p, event).StatusCode, c.status)
		page, err := p.Files().List(t.Context(), users.User{Name: "alice"}, "files", 0, 1)
		if expect.NoErr(t, err); (page.Files[0].Name == c.name) != (c.status == 200) {
			t.Errorf("%s: the newest file is %v", c.name, page.Files[0])
		}
	}
}

func TestLinksHaveTheGatewaysAddressNeverOneThatTheCallerChose(t *testing.T) {
	t.Parallel()
	const domain = "https://a1b2c3d4e5.execute-api.eu-south-1.amazonaws.com"
	for _, c := range []struct {
		name, public, stage, want string
	}{
		{name: "the gateway's own", stage: "$default", want: domain + "/v1/"},
		{name: "with a stage", stage: "test", want: domain + "/test/v1/"},
		{
			name:   "the configured one",
			public: "https://files.example.com/v1",
			stage:  "$default",
			want:   "https://files.example.com/v1/",
		},
	} {
		event := load(t, "downloadlist")
		event.RequestContext.Stage = c.stage
		for _, name := range []string{"Host", "X-Forwarded-Host", "Forwarded", "X-Original-Host"} {
			event.Headers[name], event.MultiValueHeaders[name] = "evil.example", []string{"evil.example"}
		}
		r := call(
			t,
			named(t, "downloadlist"),
			boottest.Service(t, map[string]string{"FERRY_PUBLIC_URL": c.public}),
			event,
		)
		next := strings.Join(r.MultiValueHeaders["Link"], "")
		if !strings.Contains(r.Body, `"linkURL":"`+c.want+"download/file?") ||
			!strings.HasPrefix(next, "<"+c.want) ||
			strings.Contains(r.Body+next, "evil") {
			t.Errorf("links are not to %s, %s: %s %s", c.name, c.want, r.Body, next)
		}
	}
}

// TestTheDescriptionGoesOutCompressedToThoseWhoTakeThat asks twice: the second answer is
// from memory.
func TestTheDescriptionGoesOutCompressedToThoseWhoTakeThat(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, map[string]string{"FERRY_PUBLIC_URL": "https://files.example.com/v1"})
	h := lambda.With(p).Handler(named(t, "openapi"))
	for accept, want := range map[string]bool{
		"": false, "gzip;q=0": false, "br, GZIP;q=0.5, deflate": true,
	} {
		for range 2 {
			event := load(t, "openapi")
			event.MultiValueHeaders["Accept-Encoding"] = []string{accept}
			r := send(t, h, p, event)
			body, err := base64.StdEncoding.DecodeString(r.Body)
			expect.NoErr(t, err)
			if !slices.Contains(r.MultiValueHeaders["Vary"], "Accept-Encoding") ||
				(len(r.MultiValueHeaders["Content-Encoding"]) > 0) != want {
				t.Errorf("%q: the headers are %v", accept, r.MultiValueHeaders)
			}
			if want {
				if len(body) > 30_000 {
					t.Errorf("%q: %d bytes", accept, len(body))
				}
				z, err := gzip.NewReader(bytes.NewReader(body))
				expect.NoErr(t, err)
				body, err = io.ReadAll(z)
				expect.NoErr(t, err)
			}
			if string(body) != openapi.For(p.PublicURL) {
				t.Errorf("%q: another document, of %d bytes", accept, len(body))
			}
		}
	}
}
