package openapi

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"

	"ferry/shared/api"
	"ferry/shared/api/param"
)

// Endpoint is GET /openapi.json: the description of the interface, with this service's
// address.
func Endpoint() api.Endpoint { return api.Named("openapi", newDescription) }

// newDescription returns the handler. It needs no port.
func newDescription(p *api.Ports) http.Handler {
	var packed sync.Map // by the service's address: few processes have more than one
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		base := p.Base(r.Context())
		text := For(base)
		h := w.Header()
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("Cache-Control", "public, max-age=300")
		h.Add("Vary", "Accept-Encoding")
		if param.TakesGzip(r) {
			h.Set("Content-Encoding", "gzip")
			once, _ := packed.LoadOrStore(base, sync.OnceValue(func() string {
				return pack(base)
			}))
			text = once.(func() string)()
		}
		_, err := io.WriteString(w, text)
		return err
	})
}

// pack returns the document with a service's address in gzip.
func pack(base string) string {
	var b strings.Builder
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that exists
	_, _ = io.WriteString(z, For(base))                   // a builder takes everything
	_ = z.Close()
	return b.String()
}
