// Package authfirst is POST /auth/first: with the temporary password a new
// user gets the link under which to choose one of their own.

package account

import (
	"net/http"

	"ferry/shared/envelope"

	"ferry/shared/auth"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func First() api.Endpoint {
	return api.Endpoint{
		Name:   "authfirst",
		Routes: []api.Route{{Method: "POST", Path: "/auth/first"}},
		New:    NewFirst,
	}
}

// New returns the handler. It needs the port Table.
func NewFirst(p *api.Ports) http.Handler {
	check, service := p.Auth(), p.Accounts()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := check.BasicAny(r)
		if err != nil {
			return err
		}
		token, err := service.First(r.Context(), u)
		if err != nil {
			return err
		}
		return envelope.Write(w, p.Now(), envelope.Success{
			Description: envelope.First, User: u.Name,
			LinkURL: auth.ChangeLink(p.Base(r.Context()), api.Lang(r, u), token),
		})
	})
}
