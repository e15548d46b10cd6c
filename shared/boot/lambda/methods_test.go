package lambda_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
)

func TestOtherMethodsOfEachPathAreNotAllowed(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	methods := map[string][]string{}
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			methods[r.Path] = append(methods[r.Path], r.Method)
		}
	}
	for path, allowed := range methods {
		event := load(t, "notfound")
		event.HTTPMethod = http.MethodPatch
		event.Path = api.Prefix + strings.ReplaceAll(path, "{id}", "7")
		r := call(t, named(t, "notfound"), p, event)
		if r.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(r.Body, `"status":405`) {
			t.Errorf("PATCH %s: status %d: %s", path, r.StatusCode, r.Body)
			continue
		}
		got := strings.Split(r.MultiValueHeaders["Allow"][0], ", ")
		for _, m := range allowed {
			if !slices.Contains(got, m) {
				t.Errorf("PATCH %s: Allow %v lacks %s", path, got, m)
			}
		}
	}
}
