// Package health is GET /health: whether the service can do its work.
package health

import (
	"errors"
	"net/http"
	"time"

	"ferry/shared/endpoint"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// retry is when to look again after trouble.
const retry = 5 * time.Second

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "health",
		Routes: []endpoint.Route{{Method: "GET", Path: "/health"}, {Method: "HEAD", Path: "/health"}},
		New:    New,
	}
}

// New returns the handler. It needs the port Table, which it reads once.
func New(p *endpoint.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		var none struct{}
		err := p.Table.Get(r.Context(), table.Key{PK: "health", SK: "health"}, &none)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return &fault.Error{Kind: fault.Unavailable, Detail: "the table does not answer", After: retry, Cause: err}
		}
		return envelope.Write(w, p.Now(), envelope.Success{Description: envelope.Health})
	})
}
