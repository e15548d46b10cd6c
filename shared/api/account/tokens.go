package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// Tokens is /tokens and the path below it: tokens for programs, and the logins of devices.
func Tokens() api.Endpoint { return api.Named("tokens", newTokens) }

// newTokens returns the handler. It needs the port Table.
func newTokens(p *api.Ports) http.Handler {
	h := tokens{p, p.Tokens()}
	return p.ByRoute(map[string]api.Handler{
		"POST /tokens":        api.WithJSON(false, h.add),
		"GET /tokens":         h.list,
		"DELETE /tokens":      h.endAll,
		"DELETE /tokens/{id}": h.end,
	}, "only")
}

type tokens struct {
	ports  *api.Ports
	tokens *identity.Tokens
}

// add makes a token, which is shown only this once. After authentication it costs two calls.
func (h tokens) add(w http.ResponseWriter, r *http.Request, u identity.Identity, in wire.NewToken) error {
	want := identity.APIToken{Name: in.Name, Scope: identity.Scope(in.Scope)}
	if want.Scope.IsLogin() {
		want.Idle = int64(identity.DeviceIdle.Seconds())
	}
	var err error
	if want.Expires, err = param.When("expires", in.Expires, h.ports.Now()); err != nil {
		return err
	}
	token, made, err := h.tokens.Make(r.Context(), u.User, want)
	if err != nil {
		return err
	}
	out := shown(made)
	out.Token = token
	return envelope.WriteJSON(w, http.StatusCreated, out)
}

func shown(t identity.APIToken) wire.Token {
	return wire.Token{
		ID: t.ID, Name: t.Name, Scope: string(t.Scope), Created: param.Time(t.Created), Used: param.Time(t.Used),
		Expires: param.Time(t.Expires), Ends: t.Ends().UTC(),
	}
}

func (h tokens) list(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	all, err := h.tokens.List(r.Context(), u.User)
	if err != nil {
		return err
	}
	out := make([]wire.Token, len(all))
	for i, t := range all {
		out[i] = shown(t)
		out[i].This = t.ID == u.Token
	}
	return envelope.WriteJSON(w, http.StatusOK, map[string]any{"tokens": out})
}

func (h tokens) end(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	return envelope.WriteNothing(w, h.tokens.End(r.Context(), u.User, r.PathValue("id")))
}

// endAll ends all tokens and bearers, including the caller's, which costs one call; or only some of
// them, which costs two.
func (h tokens) endAll(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	end, q := h.tokens.EndAll, r.URL.Query()
	only := q.Get("only")
	switch {
	case only == "logins":
		end = h.tokens.EndLogins
	case only == "programs":
		end = h.tokens.EndPrograms
	case q.Has("only"):
		return fault.Parameter("only", "the parameter only must be logins or programs")
	}
	return envelope.WriteNothing(w, end(r.Context(), u.User))
}
