package api

import (
	"net/http"
	"net/url"
	"strings"
)

// ToPage redirects a browser from an address of the interface to a page. The redirect is relative,
// because the service may be below a path that only the browser knows. depth is how many segments
// the address has after the first one below wire.Prefix.
func ToPage(w http.ResponseWriter, depth int, page string, query url.Values) error {
	h := w.Header()
	h.Set("Location", strings.Repeat("../", depth+1)+page+"?"+query.Encode())
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
