package lambda_test

import (
	"net/http"
	"testing"

	"ferry/shared/boot/boottest"
)

// TestAPartSentToTheGatewayIsNotFound: no function has the route
// on which `ferry serve` takes parts.
func TestAPartSentToTheGatewayIsNotFound(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	event := load(t, "notfound")
	event.HTTPMethod, event.Path, event.Body = http.MethodPut, "/v1/uploads/1-x/parts/1", "bytes"
	event.MultiValueHeaders["Content-Length"] = []string{"5"}
	r := call(t, named(t, "notfound"), p, event)
	if r.StatusCode != http.StatusNotFound || len(r.MultiValueHeaders["Allow"]) != 0 {
		t.Errorf("status %d, %v", r.StatusCode, r.MultiValueHeaders)
	}
}
