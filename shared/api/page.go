package api

import (
	"net/http"
	"net/url"
)

// ToPage leads a browser from an address of the interface to a page. The address is relative, as the
// service may be below a path that only the browser knows; depth is how many segments the
// address has after the first.
func ToPage(w http.ResponseWriter, depth int, page string, query url.Values) error {
	h := w.Header()
	up := "../"
	for range depth {
		up += "../"
	}
	h.Set("Location", up+page+"?"+query.Encode())
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
