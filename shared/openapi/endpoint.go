package openapi

import (
	"io"
	"net/http"

	"ferry/shared/api"
)

// Endpoint is GET /openapi.json: the description of the interface, with this service's
// address.
func Endpoint() api.Endpoint { return api.Named("openapi", newDescription) }

// newDescription returns the handler. It needs no port.
func newDescription(p *api.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, err := io.WriteString(w, For(p.Base(r.Context())))
		return err
	})
}
