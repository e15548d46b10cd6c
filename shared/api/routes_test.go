package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

func TestPathsMatchTheirTemplates(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/upload":            "POST, PUT",
		"/files/7":           "DELETE, GET, HEAD, PATCH",
		"/files/7/restore":   "POST",
		"/auth/forget":       "GET",
		"/requests/in":       "GET, HEAD, POST, PUT",
		"/requests/7":        "DELETE, PATCH",
		"/files/":            "",
		"/files//restore":    "",
		"/files/7/restore/x": "",
		"/upload/":           "",
		"/upload/a.txt":      "PUT",
		"/upload/a/b":        "",
		"/uploads/7/parts/1": "PUT",
		"":                   "",
	} {
		expect.Equal(t, path, strings.Join(api.Methods(path), ", "), want)
	}
}

func TestHealthFollowsTheTable(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Calls.Before("table.Get", func() error { return errors.New("the disk is gone") })
	s.Send("GET /health", "").Want(503).WantHeaders("Ferry-Error", "the table does not answer", "Retry-After", "5")
	s.Calls.Before("table.Get", nil)
	s.Send("GET /health", "").Want(200)
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
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost"+path, nil))
		expect.Equal(t, path, w.Code, want)
	}
}
