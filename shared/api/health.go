package api

import (
	"errors"
	"net/http"

	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// Health is GET /health: it reports whether the service works.
func Health() Endpoint { return Named("health", newHealth) }

// newHealth returns the handler. It needs the port Table, and reads it once.
func newHealth(p *Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		err := p.Table.Get(r.Context(), table.Key{PK: "health", SK: "health"}, new(struct{}))
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return &fault.Fault{
				Kind:   fault.Unavailable,
				Detail: "the table does not answer",
				After:  busyFor,
				Cause:  err,
			}
		}
		return envelope.Write(w, p.Now(), envelope.Body{Description: envelope.Health})
	})
}
