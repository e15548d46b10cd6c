// Package downloadlist is GET /download/list: the caller's user area.

package file

import (
	"net/http"

	"ferry/shared/blob"

	"ferry/shared/api/endpoint"
)

// Endpoint names the endpoint and its routes.
func List() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "downloadlist",
		Routes: []endpoint.Route{{Method: "GET", Path: "/download/list"}, {Method: "HEAD", Path: "/download/list"}},
		New:    NewList,
	}
}

// New returns the handler. It needs the port Table and the link key.
func NewList(p *endpoint.Ports) http.Handler { return newList(p, blob.Files) }
