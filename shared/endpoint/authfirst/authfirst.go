// Package authfirst is POST /auth/first: with the temporary password a new
// user gets the link under which to choose one of their own.
package authfirst

import (
	"net/http"

	"ferry/shared/endpoint"
	"ferry/shared/envelope"
	"ferry/shared/links"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "authfirst",
		Routes: []endpoint.Route{{Method: "POST", Path: "/auth/first"}},
		New:    New,
	}
}

// New returns the handler. It needs the port Table.
func New(p *endpoint.Ports) http.Handler {
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
			LinkURL: links.Change(p.Base(r.Context()), endpoint.Lang(r, u), token),
		})
	})
}
