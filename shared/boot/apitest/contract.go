package apitest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/openapi"
	"ferry/shared/wire"
)

// contract is the interface's description, which responses are checked against.
type contract struct{ doc *openapi3.T }

// readContract reads the description once for all servers of a test binary.
var readContract = sync.OnceValues(func() (contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(openapi.For("http://127.0.0.1/v1")))
	return contract{doc}, err
})

func described(t testing.TB) contract {
	t.Helper()
	c, err := readContract()
	check(t, "reading the interface's description", err)
	return c
}

// check returns an error for a response that the description does not allow. It
// ignores what is not part of the interface, such as the inbox.
func (c contract) check(r *http.Request, resp *http.Response, body []byte) error {
	if resp.Header.Get("X-Amz-Request-Id") != "" {
		return nil // the store's answer
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), wire.Prefix)
	isPage := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
	isAsset := strings.HasPrefix(r.URL.Path, "/static/")
	if !ok && (resp.StatusCode != http.StatusNotFound || isPage || isAsset) {
		return nil
	}
	if r.Method == http.MethodOptions && resp.StatusCode == http.StatusNoContent {
		return nil // a preflight is not an operation
	}
	var op *openapi3.Operation
	for template, item := range c.doc.Paths.Map() {
		if template == path ||
			c.doc.Paths.Value(path) == nil && (api.Route{Path: template}).Fits(path) {
			op = item.GetOperation(r.Method)
		}
	}
	if op = cmp.Or(op, c.fallback(resp.StatusCode)); op == nil {
		return fmt.Errorf("%s %s is not described, but got status %d",
			r.Method, path, resp.StatusCode)
	}
	get := r.Clone(context.Background())
	get.Method = http.MethodGet // for HEAD the headers would not be checked
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: get,
			Route:   &routers.Route{Spec: c.doc, Path: path, Method: r.Method, Operation: op},
		},
		Status: resp.StatusCode,
		Header: resp.Header,
		Body:   io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody: r.Method == http.MethodHead ||
				isContent(r, path, resp.StatusCode),
		},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		return fmt.Errorf("%s %s breaks the described interface: %w", r.Method, path, err)
	}
	return nil
}

// fallback returns an operation for requests that match no route.
func (c contract) fallback(status int) *openapi3.Operation {
	name := map[int]string{
		http.StatusNotFound:         "NotFound",
		http.StatusMethodNotAllowed: "MethodNotAllowed",
	}[status]
	if name == "" {
		return nil
	}
	response := &openapi3.ResponseRef{Value: c.doc.Components.Responses[name].Value}
	return &openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(
		status,
		response,
	))}
}

// isContent reports whether a response is a file's bytes, of any type, not an envelope.
func isContent(r *http.Request, path string, status int) bool {
	return strings.HasPrefix(path, "/download/file") && status < 400 &&
		(param.Asked(r) != param.AsJSON || r.URL.Query().Get("download") != "")
}
