package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ferry/shared/client"
)

// TestCompletionThatMakesProgressIsRetried uses a service that compares a
// large file's SHA-256 over many requests, and one that only says it is busy.
func TestCompletionThatMakesProgressIsRetried(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		says func(n int) string
		ok   bool
	}{
		"that makes progress": {func(n int) string { return fmt.Sprintf("%d of 30 bytes so far", n) }, true},
		"that is only busy":   {func(int) string { return "the service is busy; try again" }, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := against(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/complete") {
					fmt.Fprint(w, `{"bearer":"a bearer","id":"7-x","length":1,"partSize":1,"parts":1,"state":"done"}`)
					return
				}
				if asked++; asked <= 30 {
					w.Header().Set("Ferry-Error", test.says(asked))
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				fmt.Fprint(
					w,
					`{"status":0,"description":"handlerUpload:succsessfully","apiver":"v1 (3.6.0)","user":"x","files":[{"id":7,"name":"large","length":1,"modified":1,"linkURL":"http://127.0.0.1/v1/download/file?k=x"}]}`,
				)
			})
			f, err := c.Put(t.Context(), client.Source{Length: 1}, client.PutOptions{Session: "7-x"})
			if (err == nil) != test.ok || test.ok && f.Name != "large" {
				t.Errorf("after %d requests: %+v, %v", asked, f, err)
			}
		})
	}
}
