package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
)

// Change is POST /auth/change: specification section 4.7.
func Change() api.Endpoint { return api.Named("authchange", newChange) }

// newChange returns the handler. It needs the port Table.
func newChange(p *api.Ports) http.Handler {
	service, outlet := passwords(p), p.Outlet()
	outlet.Links = true
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		c, err := read(w, r)
		if err != nil {
			return err
		}
		user, err := service.Change(r.Context(), c)
		if err != nil {
			return err
		}
		return envelope.Write(w, p.Now(), envelope.Success{
			Description: envelope.Forget, User: user,
			LinkURL: auth.ChangeLink(p.Base(r.Context()), api.Lang(r, auth.User{}), c.Token),
		})
	})
}

// read takes PIN and password from the query or from a form, so that they
// need not stand in a URL.
func read(w http.ResponseWriter, r *http.Request) (auth.Change, error) {
	q, err := api.Query(r)
	if err != nil {
		return auth.Change{}, err
	}
	form, _, err := api.Form(r)
	if err != nil {
		return auth.Change{}, err
	}
	value := func(name string) string {
		if v := form.Get(name); v != "" {
			return v
		}
		return q.Get(name)
	}
	c := auth.Change{Token: value("k"), PIN: value("p"), Password: value("z")}
	if c.Token == "" {
		return auth.Change{}, envelope.NewFault(envelope.Invalid, "the query parameter k, the change token, is missing")
	}
	return c, nil
}
