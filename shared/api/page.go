package api

import (
	"net/http"

	"ferry/shared/envelope"
)

// WritePage sends an HTML page to a browser. The page may contain styles, and anything
// else that policy allows. It must not be framed, indexed or cached, and its address,
// which contains a token, is not sent to other sites.
func WritePage(w http.ResponseWriter, status int, policy, html string) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+policy+"frame-ancestors 'none'")
	return envelope.WriteText(w, status, []byte(html))
}
