// Package oauthrevoke is POST /oauth2/revoke: RFC 7009.

package account

import (
	"net/http"

	"ferry/shared/envelope"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func Revoke() api.Endpoint {
	return api.Endpoint{
		Name:   "oauthrevoke",
		Routes: []api.Route{{Method: "POST", Path: "/oauth2/revoke"}},
		New:    NewRevoke,
	}
}

// New returns the handler. It needs the port Table. Who has a token may end
// it; a token that is none is answered alike.
func NewRevoke(p *api.Ports) http.Handler {
	check := p.Auth()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		form, ok, err := api.Form(w, r)
		if err != nil {
			return err
		}
		if !ok {
			return envelope.NewFault(envelope.Invalid, "the body must be application/x-www-form-urlencoded")
		}
		token := form.Get("token")
		if token == "" {
			return envelope.NewFault(envelope.Invalid, "the form field token is missing")
		}
		if err := check.Revoke(r.Context(), token); err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		return nil
	})
}
