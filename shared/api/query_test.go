package api_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/envelope"
	"ferry/shared/fault"
)

func TestFormIsReadOnlyFromTheBody(t *testing.T) {
	t.Parallel()
	const urlencoded = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		what, kind, body string
		ok               bool
		value            string
		kindOfFault      fault.Kind
	}{
		{"a form", urlencoded, "name=a+b%21", true, "a b!", fault.Internal},
		{"a form with a charset", urlencoded + "; charset=UTF-8", "name=x", true, "x", fault.Internal},
		{"JSON is not a form", "application/json", `{"name":"x"}`, false, "", fault.Internal},
		{"a body without a type is not a form", "", "name=x", false, "", fault.Internal},
		{"broken percent signs", urlencoded, "name=%zz", true, "", fault.Invalid},
		{"semicolons", urlencoded, "name=x;y=z", true, "", fault.Invalid},
	} {
		r := httptest.NewRequest("POST", "/?name=query", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		form, ok, err := api.Form(r)
		if ok != c.ok || form.Get("name") != c.value {
			t.Errorf("%s: %q, %v", c.what, form.Get("name"), ok)
		}
		if got := fault.Of(err); (err != nil) != (c.kindOfFault != fault.Internal) || got != nil && got.Kind != c.kindOfFault {
			t.Errorf("%s: the error is %v", c.what, err)
		}
		if err != nil && strings.Contains(err.Error(), "%zz") {
			t.Errorf("%s: the error quotes the form: %v", c.what, err)
		}
	}
}

func TestLongFormIsRefused(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/", strings.NewReader("name="+strings.Repeat("x", 16<<10)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, _, err := api.Form(r)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge {
		t.Errorf("the error is %v, want a fault about the length", err)
	}
}

func TestQueryNumberMustBeWithinBounds(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int64{
		"": 7, "n=": -1, "n=1": 1, "n=10": 10, "n=0": -1, "n=11": -1, "n=-1": -1, "n=x": -1, "n=1.5": -1, "n=+3": -1, "n=%2B3": 3,
		"n=99999999999999999999": -1, "n=1e1": -1, "n=%201": -1, "n=4;m=5": -1, "n=%zz": -1,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		n, err := api.Number(r, "n", 1, 10, 7)
		if want < 0 && !fault.Is(err, fault.Invalid) || want >= 0 && (err != nil || n != want) {
			t.Errorf("%q gives %d, %v", query, n, err)
		}
	}
}

func TestFileHasOnlyOneID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "10": 10, "9223372036854775807": 9223372036854775807,
		"": 0, "0": 0, "-1": 0, "+1": 0, "01": 0, " 1": 0, "1 ": 0, "1e0": 0, "1_0": 0, "\uff11": 0, "1\x00": 0, "9223372036854775808": 0,
	} {
		r := httptest.NewRequest("DELETE", "/", nil)
		r.SetPathValue("id", text)
		n, err := api.FileID(r)
		if want == 0 && !fault.Is(err, fault.Invalid) || want > 0 && (err != nil || n != want) {
			t.Errorf("%q gives %d, %v", text, n, err)
		}
	}
}

func TestUncleanPathIsNotRedirected(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	h := api.Exact(mux, http.NotFoundHandler())
	for path, want := range map[string]int{
		"/": 200, "/v1": 200, "/v1/": 200, "/v1/upload": 200, "/v1/upload/": 200, "/v1/a%2f%2fb": 200, "/v1/%2e%2e/x": 200, "/v1/..x": 200,
		"//": 404, "//v1/upload": 404, "/v1//upload": 404, "/v1/upload//": 404, "/v1/./upload": 404, "/v1/../upload": 404, "/v1/upload/..": 404, "/v1/upload/.": 404,
	} {
		for _, method := range []string{"GET", "POST"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, nil))
			apitest.Equal(t, method+" "+path, w.Code, want)
		}
	}
}

func TestBrokenFormIsNotQuotedInTheLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}
	broken := iotest.ErrReader(errors.New("malformed: password=hunter2"))
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("a=b"), broken))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	o.Handler(func(_ http.ResponseWriter, r *http.Request) error { _, _, err := api.Form(r); return err }).ServeHTTP(httptest.NewRecorder(), r)
	if said := log.String(); !strings.Contains(said, "status=400") || strings.Contains(said, "hunter2") {
		t.Errorf("the log says %s", said)
	}
}
