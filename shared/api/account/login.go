package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
)

// Login is POST /auth/login: specification section 4.2.
func Login() api.Endpoint { return api.Named("authlogin", newLogin) }

// newLogin returns the handler. It needs the port Table.
func newLogin(p *api.Ports) http.Handler {
	check := auth.New(p.Ports)
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		name, password, ok := r.BasicAuth()
		if !ok {
			return envelope.NewFault(envelope.Unauthorized, "an Authorization header of the form Basic is missing")
		}
		u, bearer, err := check.Login(r.Context(), name, password, auth.Source(r))
		if err != nil {
			return err
		}
		return envelope.Write(w, p.Now(), envelope.Success{Description: envelope.Login, User: u.Name, Bearer: bearer})
	})
}
