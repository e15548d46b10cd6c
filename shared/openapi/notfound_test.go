package openapi_test

import (
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

func TestUnknownPathsAreNotFound(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, path := range []string{"/", "/nothing", "/upload/x/y", "/files", "/files/1/2", "/auth", "/oauth2/authorize", "/Upload", "/%2e%2e/x", "/download/file/backup/x", "//upload", "/files//restore", "/./health", "/x/../health"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			resp := s.Request(method, path, nil)
			if says := resp.Header.Get("Ferry-Error"); !strings.Contains(says, "/v1/openapi.json") {
				t.Errorf("%s %s says %q", method, path, says)
			}
			s.Decode(resp, 404)
		}
	}
}

func TestAllowNamesTheOtherMethods(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	methods := map[string][]string{}
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			methods[r.Path] = append(methods[r.Path], r.Method)
		}
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		for _, method := range []string{"PATCH", "DELETE", "PUT", "POST", "GET", "HEAD", "OPTIONS"} {
			if slices.Contains(allowed, method) {
				continue
			}
			resp := s.Request(method, strings.ReplaceAll(path, "{id}", "7"), nil)
			if got := resp.Header.Get("Allow"); got != strings.Join(allowed, ", ") {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got, allowed)
			}
			if method == "HEAD" {
				if resp.StatusCode != 405 || s.Text(resp) != "" {
					t.Errorf("HEAD %s: status %d", path, resp.StatusCode)
				}
				continue
			}
			if e := s.Decode(resp, 405); e.Status != 405 || !strings.Contains(resp.Header.Get("Ferry-Error"), allowed[0]) {
				t.Errorf("%s %s: the answer is %+v, %q", method, path, e, resp.Header.Get("Ferry-Error"))
			}
		}
	}
}

// TestPreflightGrantsNothingByItself leaves it to the gateway to allow origins.
func TestPreflightGrantsNothingByItself(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for path, status := range map[string]int{"/upload": 204, "/files/7": 204, "/nothing": 404} {
		resp := s.Request("OPTIONS", path, nil, "Origin", "https://app.example.com", "Access-Control-Request-Method", "PUT")
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
