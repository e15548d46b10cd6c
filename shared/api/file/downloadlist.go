// Package downloadlist is GET /download/list: the caller's user area.

package file

import (
	"net/http"

	"ferry/shared/blob"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func List() api.Endpoint {
	return api.Endpoint{
		Name:   "downloadlist",
		Routes: []api.Route{{Method: "GET", Path: "/download/list"}, {Method: "HEAD", Path: "/download/list"}},
		New:    NewList,
	}
}

// New returns the handler. It needs the port Table and the link key.
func NewList(p *api.Ports) http.Handler { return newList(p, blob.Files) }
