// Package account has the endpoints for credentials: log in and out, choose a new
// password, and stop mail to an address. Start reading with token.go.
package account

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/users"
)

// server handles what a caller does with an account.
type server struct{ *api.Ports }

// Login is POST /auth/login (specification section 4.2).
func Login() api.Endpoint { return api.Named("authlogin", newLogin) }

// newLogin returns the handler. It needs the port Table.
func newLogin(p *api.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, bearer, err := p.Passwords().Login(r.Context(), identity.Read(r))
		if err != nil {
			return err
		}
		return envelope.Write(w, p.Now(), envelope.Body{
			Description: envelope.Login,
			User:        u.Name,
			Bearer:      bearer,
		})
	})
}

// First is POST /auth/first: with the temporary password, a new user gets the link to
// choose a password.
func First() api.Endpoint { return api.Named("authfirst", newFirst) }

// newFirst returns the handler. It needs the port Table.
func newFirst(p *api.Ports) http.Handler {
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := p.Passwords().User(r.Context(), identity.Read(r))
		if err != nil {
			return err
		}
		token, err := p.Users().First(r.Context(), u)
		if err != nil {
			return err
		}
		return envelope.Write(w, p.Now(), envelope.Body{
			Description: envelope.First,
			User:        u.Name,
			LinkURL:     keys.ChangeLink(p.Base(r.Context()), param.Lang(r, u), token),
		})
	})
}

// Forget is GET /auth/forget (specification section 4.6).
func Forget() api.Endpoint { return api.Named("authforget", newForget) }

// newForget returns the handler. It needs the port Table and the link key.
func newForget(p *api.Ports) http.Handler {
	accounts, outlet := p.Users(), p.Outlet()
	outlet.Links = true
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		name, err := param.Required(r, "u", "the user's name")
		if err != nil {
			return err
		}
		base, lang := p.Base(r.Context()), param.Lang(r, users.User{})
		token, user, err := accounts.Forget(r.Context(), name, identity.Source(r), base, lang)
		if err != nil {
			return err
		}
		p.Notify()
		return envelope.Write(w, p.Now(), envelope.Body{
			Description: envelope.Forget,
			User:        user,
			LinkURL:     keys.ChangeLink(base, lang, token),
		})
	})
}

// Change is POST /auth/change (specification section 4.7). GET redirects a browser to the page.
func Change() api.Endpoint { return api.Named("authchange", newChange) }

// newChange returns the handler. It needs the port Table.
func newChange(p *api.Ports) http.Handler {
	accounts, outlet := p.Users(), p.Outlet()
	outlet.Links, outlet.WriteError = true, func(w http.ResponseWriter, r *http.Request, status int) error {
		if isPerson(r) &&
			r.Method == http.MethodPost &&
			status < http.StatusInternalServerError {
			return toPassword(w, r, url.Values{"wrong": {strconv.Itoa(status)}})
		}
		return envelope.WriteError(w, p.Now(), status)
	}
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", param.VaryByShape)
		if r.Method == http.MethodGet {
			return showChange(w, r)
		}
		c, err := read(r)
		if err != nil {
			return err
		}
		user, err := accounts.Change(r.Context(), c)
		switch {
		case err != nil:
			return err
		case isPerson(r) && c.Password != "":
			return api.ToPage(w, 1, "login", url.Values{"changed": {"1"}, "user": {user}})
		case isPerson(r):
			return toPassword(w, r, url.Values{})
		}
		return envelope.Write(w, p.Now(), envelope.Body{
			Description: envelope.Forget,
			User:        user,
			LinkURL: keys.ChangeLink(
				p.Base(r.Context()),
				param.Lang(r, users.User{}),
				c.Token,
			),
		})
	})
}

// showChange redirects a browser to the page where a password is chosen.
func showChange(w http.ResponseWriter, r *http.Request) error {
	if !isPerson(r) || r.URL.Query().Get("k") == "" {
		return &fault.Fault{
			Kind:   fault.MethodNotAllowed,
			Detail: "this address accepts POST",
			Allow:  []string{http.MethodPost},
		}
	}
	return toPassword(w, r, url.Values{})
}

// toPassword redirects a browser to that page, and passes on the token, the language and query.
func toPassword(w http.ResponseWriter, r *http.Request, query url.Values) error {
	given := r.URL.Query()
	for _, name := range []string{"lang", "k"} {
		if value := cmp.Or(r.PostForm.Get(name), given.Get(name)); value != "" {
			query.Set(name, value)
		}
	}
	return api.ToPage(w, 1, "password", query)
}

func isPerson(r *http.Request) bool { return param.Asked(r) == param.AsPage }

// read takes the token, PIN and password from the query or from a form, so that they
// need not be in a URL.
func read(r *http.Request) (c users.Change, err error) {
	q, err := param.Query(r)
	if err != nil {
		return c, err
	}
	form, err := param.Form(r, false)
	if err != nil {
		return c, err
	}
	value := func(name string) string { return cmp.Or(form.Get(name), q.Get(name)) }
	c = users.Change{Token: param.TrimToken(value("k")), PIN: value("p"), Password: value("z")}
	if c.Token == "" {
		return c, fault.Parameter("k", "the query parameter k, the change token, is missing")
	}
	return c, nil
}
