package openapi_test

import (
	"slices"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

func TestUnknownPathsAreNotFound(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, path := range []string{
		"/", "/nothing", "/upload/x/y", "/files", "/files/1/2", "/auth", "/oauth2/authorize", "/Upload", "/%2e%2e/x",
		"/download/file/backup/x", "//upload", "/files//restore", "/./health", "/x/../health",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			s.Send(method+" "+path, "").Want(404, "/v1/openapi.json")
		}
	}
}

func TestAllowNamesTheOtherMethods(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	paths := map[string]bool{}
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			paths[strings.ReplaceAll(r.Path, "{id}", "7")] = e.Prefix != "" // not those of pages
		}
	}
	for path, described := range paths {
		if !described {
			continue
		}
		allowed := api.Methods(path) // one path may fit several routes
		for _, method := range []string{"PATCH", "DELETE", "PUT", "POST", "GET", "HEAD", "OPTIONS"} {
			if slices.Contains(allowed, method) {
				continue
			}
			a := s.Send(method+" "+path, "").Want(405, allowed[0])
			a.WantHeaders("Allow", strings.Join(allowed, ", "))
			if (a.Status == 405) == (method == "HEAD") {
				t.Errorf("%s %s is answered with %q", method, path, a.Text)
			}
		}
	}
}

// TestPreflightGrantsNothingByItself leaves it to the gateway to allow origins.
func TestPreflightGrantsNothingByItself(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for path, status := range map[string]int{"/upload": 204, "/files/7": 204, "/nothing": 404} {
		resp := s.Request(
			"OPTIONS",
			path,
			nil,
			"Origin",
			"https://app.example.com",
			"Access-Control-Request-Method",
			"PUT",
		)
		if resp.StatusCode != status || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: status %d, %v", path, resp.StatusCode, resp.Header)
		}
		for _, missing := range []string{"Origin", "Access-Control-Request-Method"} {
			if resp := s.Request("OPTIONS", path, nil, missing, "https://app.example.com"); resp.StatusCode < 404 {
				t.Errorf("%s: a request that is not a preflight: status %d", path, resp.StatusCode)
			}
		}
	}
}
