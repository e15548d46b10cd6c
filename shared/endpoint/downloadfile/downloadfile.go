// Package downloadfile is GET /download/file: specification section 4.4.
package downloadfile

import (
	"net/http"

	"ferry/shared/blob"
	"ferry/shared/endpoint"
	"ferry/shared/serve"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "downloadfile",
		Routes: []endpoint.Route{{Method: "GET", Path: "/download/file"}, {Method: "HEAD", Path: "/download/file"}},
		New:    New,
	}
}

// New returns the handler. It needs the ports Table and Blobs.
func New(p *endpoint.Ports) http.Handler { return serve.New(p, blob.Files, "k") }
