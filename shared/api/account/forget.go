package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
)

// Forget is GET /auth/forget: specification section 4.6.
func Forget() api.Endpoint { return api.Named("authforget", newForget) }

// newForget returns the handler. It needs the port Table and the link key.
func newForget(p *api.Ports) http.Handler {
	service, outlet := passwords(p), p.Outlet()
	outlet.Links = true
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		q, err := api.Query(r)
		if err != nil {
			return err
		}
		name := q.Get("u")
		if name == "" {
			return envelope.NewFault(envelope.Invalid, "the query parameter u, the user's name, is missing")
		}
		base, lang := p.Base(r.Context()), api.Lang(r, auth.User{})
		token, user, err := service.Forget(r.Context(), name, base, lang)
		if err != nil {
			return err
		}
		p.Notify()
		return envelope.Write(w, p.Now(), envelope.Success{
			Description: envelope.Forget, User: user, LinkURL: auth.ChangeLink(base, lang, token),
		})
	})
}
