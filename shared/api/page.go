package api

import (
	"io"
	"net/http"
	"strconv"
)

// WritePage sends an HTML page for a person in a browser. The page may have styles of
// its own, and beyond that what policy allows; nobody may frame, index or cache it, and
// its address, which has a token in it, goes to no other site.
func WritePage(w http.ResponseWriter, status int, policy, html string) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(html)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+policy+"frame-ancestors 'none'")
	w.WriteHeader(status)
	_, err := io.WriteString(w, html)
	return err
}
