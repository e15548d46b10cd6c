package openapi

import (
	"net/http"
	"slices"
	"strings"

	"ferry/shared/api"
	"ferry/shared/fault"
)

// NotFound answers requests that no other endpoint handles: 404 for an unknown path,
// 405 for a known one with another method. It has no routes: it is the gateway's
// $default route and the local server's fallback.
func NotFound() api.Endpoint { return api.Named("notfound", NewNotFound) }

// NewNotFound returns the handler. It needs no port, and does not depend on the endpoints.
func NewNotFound(p *api.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		path, ok := strings.CutPrefix(r.URL.Path, api.Prefix)
		allow := api.Methods(path)
		switch {
		case !ok:
			return fault.New(fault.NotFound, "there is no such page; see %s/openapi.json", api.Prefix)
		case len(allow) == 0:
			return fault.New(fault.NotFound, "there is nothing at this address; see %s/openapi.json", api.Prefix)
		// A gateway may send preflights to its $default route, and then adds the headers that
		// allow them to the answer. Without those a browser takes the answer as a no.
		case r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
			r.Header.Get("Access-Control-Request-Method") != "":
			w.WriteHeader(http.StatusNoContent)
			return nil
		case slices.Contains(allow, r.Method): // sending a part in the cloud; parts go to the store there
			return fault.New(fault.NotFound,
				"there is nothing at this address; the parts of an upload go to the URLs that were given out")
		}
		return api.NotAllowed(path)
	})
}
