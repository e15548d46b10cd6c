// Package oauthrevoke is POST /oauth2/revoke: RFC 7009.
package oauthrevoke

import (
	"net/http"

	"ferry/shared/endpoint"
	"ferry/shared/fault"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "oauthrevoke",
		Routes: []endpoint.Route{{Method: "POST", Path: "/oauth2/revoke"}},
		New:    New,
	}
}

// New returns the handler. It needs the port Table. Who has a token may end
// it; a token that is none is answered alike.
func New(p *endpoint.Ports) http.Handler {
	check := p.Auth()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		form, ok, err := endpoint.Form(w, r)
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.Invalid, "the body must be application/x-www-form-urlencoded")
		}
		token := form.Get("token")
		if token == "" {
			return fault.New(fault.Invalid, "the form field token is missing")
		}
		if err := check.Revoke(r.Context(), token); err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		return nil
	})
}
