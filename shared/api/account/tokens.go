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
	s := server{p}
	return p.ByRoute(map[string]api.Handler{
		"POST /tokens":        api.WithJSON(false, s.addToken),
		"GET /tokens":         s.listTokens,
		"DELETE /tokens":      s.endTokens,
		"DELETE /tokens/{id}": s.endToken,
	}, "only")
}

// addToken makes a token, which is shown only this once. After authentication it costs two calls.
func (s server) addToken(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.NewToken,
) error {
	expires, err := param.When("expires", in.Expires, s.Now())
	if err != nil {
		return err
	}
	want := identity.APIToken{Name: in.Name, Scope: identity.Scope(in.Scope), Expires: expires}
	if want.Scope.IsLogin() {
		want.Idle = int64(identity.DeviceIdle.Seconds())
	}
	token, made, err := s.Tokens().Make(r.Context(), u.User, want)
	if err != nil {
		return err
	}
	out := shown(made)
	out.Token = token
	return envelope.WriteJSON(w, http.StatusCreated, out)
}

func shown(t identity.APIToken) wire.Token {
	return wire.Token{
		ID:      t.ID,
		Name:    t.Name,
		Scope:   string(t.Scope),
		Created: param.Time(t.Created),
		Used:    param.Time(t.Used),
		Expires: param.Time(t.Expires),
		Ends:    t.Ends().UTC(),
	}
}

func (s server) listTokens(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	all, err := s.Tokens().List(r.Context(), u.User)
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

func (s server) endToken(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	return envelope.WriteNothing(w, s.Tokens().End(r.Context(), u.User, r.PathValue("id")))
}

// endTokens ends all tokens and bearers, including the caller's, which costs one call; or only some of
// them, which costs two.
func (s server) endTokens(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	tokens, q := s.Tokens(), r.URL.Query()
	end, only := tokens.EndAll, q.Get("only")
	switch {
	case only == "logins":
		end = tokens.EndLogins
	case only == "programs":
		end = tokens.EndPrograms
	case q.Has("only"):
		return fault.Parameter("only", "the parameter only must be logins or programs")
	}
	return envelope.WriteNothing(w, end(r.Context(), u.User))
}
