package api

import (
	"errors"
	"net/http"
	"time"

	"ferry/shared/envelope"
	"ferry/shared/table"
)

// healthRetry is when to look again after trouble.
const healthRetry = 5 * time.Second

// Health is GET /health: whether the service can do its work.
func Health() Endpoint { return Named("health", newHealth) }

// newHealth returns the handler. It needs the port Table, which it reads once.
func newHealth(p *Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		var none struct{}
		err := p.Table.Get(r.Context(), table.Key{PK: "health", SK: "health"}, &none)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return &envelope.Fault{Kind: envelope.Unavailable, Detail: "the table does not answer", After: healthRetry, Cause: err}
		}
		return envelope.Write(w, p.Now(), envelope.Success{Description: envelope.Health})
	})
}
