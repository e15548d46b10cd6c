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
	var packed memo
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		text := For(p.Base(r.Context()))
		h := w.Header()
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("Cache-Control", "public, max-age=300")
		h.Add("Vary", "Accept-Encoding")
		if param.TakesGzip(r) {
			h.Set("Content-Encoding", "gzip")
			text = packed.gzip(text)
		}
		_, err := io.WriteString(w, text)
		return err
	})
}

// memo keeps the last text that was compressed: few processes have more than one address.
type memo struct {
	mu           sync.Mutex
	text, packed string
}

func (m *memo) gzip(text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.text != text {
		var b strings.Builder
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that exists
		_, _ = io.WriteString(z, text)                        // a builder takes everything
		_ = z.Close()
		m.text, m.packed = text, b.String()
	}
	return m.packed
}
