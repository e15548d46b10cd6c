package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
)

// First is POST /auth/first: with the temporary password a new user gets the
// link under which to choose a password.
func First() api.Endpoint { return api.Named("authfirst", newFirst) }

// newFirst returns the handler. It needs the port Table.
func newFirst(p *api.Ports) http.Handler {
	check, service := auth.New(p.Ports), passwords(p)
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
