package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
)

// Revoke is POST /oauth2/revoke: RFC 7009.
func Revoke() api.Endpoint { return api.Named("oauthrevoke", newRevoke) }

// newRevoke returns the handler. It needs the port Table. Who has a token may end
// it; a token that is none is answered alike.
func newRevoke(p *api.Ports) http.Handler {
	check := auth.New(p.Ports)
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		form, ok, err := api.Form(r)
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
