package apitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"ferry/shared/api"
	"ferry/shared/openapi"
)

// contract is the interface's description, to which responses are held.
type contract struct {
	doc   *openapi3.T
	paths openapi.PathMethods
}

// readContract reads the description once for all servers of a test binary.
var readContract = sync.OnceValues(func() (contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(openapi.For("http://127.0.0.1/v1")))
	return contract{doc, openapi.Paths()}, err
})

// check returns an error for a response that the description does not allow.
// What lies outside of the interface, such as the inbox, is not looked at.
func (c contract) check(r *http.Request, resp *http.Response, body []byte) error {
	if resp.Header.Get("X-Amz-Request-Id") != "" {
		return nil // the store's answer
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), api.Prefix)
	if !ok && resp.StatusCode != http.StatusNotFound {
		return nil
	}
	if r.Method == http.MethodOptions && resp.StatusCode == http.StatusNoContent {
		return nil // a preflight is no operation
	}
	op := c.operation(r.Method, path)
	if op == nil {
		if op = c.fallback(resp.StatusCode); op == nil {
			return fmt.Errorf("no operation is described for %s %s, and it is answered with %d", r.Method, path, resp.StatusCode)
		}
	}
	get := r.Clone(context.Background())
	get.Method = http.MethodGet // or else the headers of HEAD are not looked at
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: get, Route: &routers.Route{Spec: c.doc, Path: path, Method: r.Method, Operation: op},
		},
		Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   r.Method == http.MethodHead || isContent(r, path, resp.StatusCode),
		},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		return fmt.Errorf("%s %s breaks the described interface: %w", r.Method, path, err)
	}
	return nil
}

func (c contract) operation(method, path string) *openapi3.Operation {
	item := c.doc.Paths.Value(c.paths.Template(path))
	if item == nil {
		return nil
	}
	return item.GetOperation(method)
}

// fallback is an operation of what no route answers.
func (c contract) fallback(status int) *openapi3.Operation {
	name := map[int]string{http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed"}[status]
	if name == "" {
		return nil
	}
	response := &openapi3.ResponseRef{Value: c.doc.Components.Responses[name].Value}
	return &openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(status, response))}
}

// isContent tells a file's bytes, which may be of any type, from an envelope.
func isContent(r *http.Request, path string, status int) bool {
	return strings.HasPrefix(path, "/download/file") && status < 400 &&
		(!strings.HasPrefix(r.Header.Get("Accept"), "application/json") || r.URL.Query().Get("download") != "")
}
