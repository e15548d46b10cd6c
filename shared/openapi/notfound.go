package openapi

import (
	"net/http"
	"slices"
	"strings"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/fault"
	"ferry/shared/wire"
)

// NotFound answers requests that no other endpoint handles: 404 for an unknown path, 405 for a
// known one with another method. It has no routes: it is the gateway's $default route and the local
// server's fallback. Browsers are redirected to the page that they may mean, or to the page that
// says that there is none, because this endpoint has no templates.
func NotFound() api.Endpoint { return api.Named("notfound", NewNotFound) }

// NewNotFound returns the handler. It needs no port, and does not depend on the endpoints.
func NewNotFound(p *api.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		path, ok := strings.CutPrefix(r.URL.Path, wire.Prefix)
		allow := api.Methods(path)
		switch {
		case !ok &&
			(r.Method == http.MethodGet || r.Method == http.MethodHead) &&
			param.Asked(r) == param.AsPage:
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Location", pageFor(r))
			w.WriteHeader(http.StatusSeeOther)
			return nil
		case !ok:
			return fault.New(fault.NotFound, "there is no such page; see %s/openapi.json",
				wire.Prefix)
		case len(allow) == 0:
			return fault.New(
				fault.NotFound,
				"there is nothing at this address; see %s/openapi.json",
				wire.Prefix,
			)
		// A gateway may send preflights to its $default route, and then adds the headers that
		// allow them to the answer. Without those a browser takes the answer as a no.
		case r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
			r.Header.Get("Access-Control-Request-Method") != "":
			w.WriteHeader(http.StatusNoContent)
			return nil
		case slices.Contains(allow, r.Method): // sending a part in the cloud; parts go to the store there
			return fault.New(fault.NotFound,
				"there is nothing at this address; send the parts of an upload to the URLs that were given out")
		}
		return api.NotAllowed(path)
	})
}

// pageFor returns the address of the page that a path such as /login/ means, or else of a page that
// does not exist. The address is relative, because only the browser knows what comes before the
// path.
func pageFor(r *http.Request) string {
	path := r.URL.EscapedPath()
	name, up := strings.Trim(
		path,
		"/",
	), "./"+strings.Repeat("../", max(0, strings.Count(path, "/")-1))
	if strings.Contains(name, "/") || name == "" {
		return up + "missing"
	}
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	return up + name
}
