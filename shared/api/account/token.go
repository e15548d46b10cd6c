package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
)

// Token is POST /oauth2/token (specification section 4.1): the password grant of OAuth
// 2.0 (RFC 6749, section 4.3).
func Token() api.Endpoint { return api.Named("oauthtoken", newToken) }

type token struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	Scope       string `json:"scope"`
}

type failure struct {
	Error       int    `json:"error"`
	Description string `json:"error_description"`
	URI         string `json:"error_uri"`
}

// newToken returns the handler. It needs the port Table.
func newToken(p *api.Ports) http.Handler {
	passwords, outlet := p.Passwords(), p.Outlet()
	outlet.WriteError = func(w http.ResponseWriter, r *http.Request, status int) error {
		return write(w, status, failure{status, phrase(status), p.Base(r.Context())})
	}
	return outlet.Handler(func(w http.ResponseWriter, r *http.Request) error {
		form, err := param.Form(r, true)
		if err != nil {
			return err
		}
		// Clients may also send client_id, or Basic with it. Ferry does not tell
		// clients apart, so it ignores both.
		name, password := form.Get("username"), form.Get("password")
		switch {
		case form.Get("grant_type") != "password":
			return fault.Parameter("grant_type", "grant_type must be password")
		case name == "" || password == "":
			return fault.Parameter("username, password", "username and password are required")
		}
		_, bearer, err := passwords.Login(
			r.Context(),
			identity.FormCredential(r, name, password),
		)
		if err != nil {
			return err
		}
		return write(w, http.StatusOK, token{
			bearer, "Bearer", int(identity.Lifetime.Seconds()), p.Base(r.Context()),
		})
	})
}

func write(w http.ResponseWriter, status int, v any) error {
	h := w.Header()
	h.Set("Content-Type", "application/json;charset=UTF-8")
	h.Set("Pragma", "no-cache")
	return envelope.WriteJSON(w, status, v)
}

// phrase returns the phrase of specification section 7.2. It is Go's, except that a 500's differs
// in case.
func phrase(status int) string {
	if status == http.StatusInternalServerError {
		return "Internal server error"
	}
	return http.StatusText(status)
}

// Revoke is POST /oauth2/revoke (RFC 7009).
func Revoke() api.Endpoint { return api.Named("oauthrevoke", newRevoke) }

// newRevoke returns the handler. It needs the port Table. Knowing a token is enough to revoke it,
// and an unknown token gets the same answer.
func newRevoke(p *api.Ports) http.Handler {
	tokens := p.Tokens()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		form, err := param.Form(r, true)
		if err != nil {
			return err
		}
		token := form.Get("token")
		if token == "" {
			return fault.Parameter("token", "the form field token is missing")
		}
		w.Header().Set("Cache-Control", "no-store")
		return tokens.Revoke(r.Context(), token)
	})
}
