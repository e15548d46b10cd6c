// Package downloadlist is GET /download/list: the caller's user area.
package downloadlist

import (
	"net/http"

	"ferry/shared/blob"
	"ferry/shared/endpoint"
	"ferry/shared/listing"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "downloadlist",
		Routes: []endpoint.Route{{Method: "GET", Path: "/download/list"}, {Method: "HEAD", Path: "/download/list"}},
		New:    New,
	}
}

// New returns the handler. It needs the port Table and the link key.
func New(p *endpoint.Ports) http.Handler { return listing.New(p, blob.Files) }
