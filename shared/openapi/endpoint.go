// Package openapi is GET /openapi.json: the description of the interface for
// programs, with this service's address in it.
package openapi

import (
	"io"
	"net/http"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func Endpoint() api.Endpoint {
	return api.Endpoint{
		Name:   "openapi",
		Routes: []api.Route{{Method: "GET", Path: "/openapi.json"}, {Method: "HEAD", Path: "/openapi.json"}},
		New:    New,
	}
}

// New returns the handler. It needs no port.
func New(p *api.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, err := io.WriteString(w, For(p.Base(r.Context())))
		return err
	})
}
