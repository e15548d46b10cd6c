package envelope_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/envelope"
)

// TestABodyThatIsNotAsItsSenderMeansIsRefused: it is a piece of a file, or an encoded one.
func TestABodyThatIsNotAsItsSenderMeansIsRefused(t *testing.T) {
	t.Parallel()
	ask := func(method, header, form string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/", strings.NewReader("hello!"))
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		r.Header.Set("Content-Type", form)
		w := httptest.NewRecorder()
		nothing := func(http.ResponseWriter, *http.Request) error { return nil }
		nowhere := func(context.Context) string { return "" }
		o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.DiscardHandler), Base: nowhere}
		o.Handler(nothing).ServeHTTP(w, r)
		return w
	}
	for header, want := range map[string]int{
		"Content-Range: bytes 0-5/6": 200, "Content-Range: bytes 6-11/12": 400, "Content-Range: bytes 0-5/12": 400,
		"Content-Range: bytes 0-5/*": 400, "Content-Range: bytes */6": 400, "Content-Range: bytes 1-5/6": 400,
		"Content-Range: bytes 0-4/5": 400, "Content-Range: items 0-5/6": 400, "Content-Range: nonsense": 400,
		"Content-Range: bytes 0-5/6, bytes 0-5/6": 400,

		"Content-Encoding: Identity": 200, "Content-Encoding: GZIP": 415, "Content-Encoding: identity, gzip": 415,
		"Content-Encoding: aws-chunked": 415, "Content-Transfer-Encoding: Binary": 200,
		"Content-Transfer-Encoding: 7bit": 200, "Content-Transfer-Encoding: 8bit": 200,
		"Content-Transfer-Encoding: base64": 415,
	} {
		w := ask("PUT", header, "")
		expect.Equal(t, header, w.Code, want)
		expect.Equal(t, header+", what is accepted", w.Header().Get("Accept-Encoding") == "identity", want == 415)
	}
	longer := ask("POST", "Content-Range: bytes 0-4/5", "Multipart/form-data")
	expect.Equal(t, "a form, which is longer than its file", longer.Code, 200)
	expect.Equal(t, "a request without a body", ask("GET", "Content-Encoding: gzip", "").Code, 200)
}
