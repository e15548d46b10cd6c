package api_test

import (
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
)

func TestPathsMatchTheirTemplates(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/upload":            "POST, PUT",
		"/files/7":           "DELETE, GET, HEAD, PATCH",
		"/files/7/restore":   "POST",
		"/download/file":     "GET, HEAD",
		"/health":            "GET, HEAD",
		"/auth/forget":       "GET",
		"/requests/in":       "GET, HEAD, POST, PUT",
		"/requests/7":        "DELETE, PATCH",
		"/files/":            "",
		"/files":             "",
		"/files//restore":    "",
		"/files/7/restore/x": "",
		"/upload/":           "",
		"/upload/a.txt":      "PUT",
		"/upload/a/b":        "",
		"/uploads/7/parts/1": "PUT",
		"":                   "",
	} {
		apitest.Equal(t, path, strings.Join(api.Methods(path), ", "), want)
	}
}
