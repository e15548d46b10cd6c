package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// Me is GET /me: the caller's account, and what is left of its limits.
func Me() api.Endpoint { return api.Named("me", newMe) }

// newMe returns the handler. It needs the port Table.
func newMe(p *api.Ports) http.Handler {
	s := server{p}
	return p.ByRoute(map[string]api.Handler{
		"GET /me":           s.showAccount,
		"POST /me/password": api.WithJSON(false, s.changePassword),
	})
}

// showAccount costs one call after authentication.
func (s server) showAccount(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	notices, err := s.Outbox().Allowances(r.Context(), u.Name)
	if err != nil {
		return err
	}
	out := wire.Account{
		Name:    u.Name,
		Email:   u.Email,
		Phone:   u.Phone,
		Lang:    u.Lang,
		Notices: notices,
	}
	if u.Quota > 0 {
		out.Quota = &wire.Quota{Limit: u.Quota, Used: max(0, u.Used)}
	}
	return envelope.WriteJSON(w, http.StatusOK, out)
}

// changePassword sets a new password, which ends all bearers and tokens. A wrong old password counts as a
// failed login. After authentication it costs two calls.
func (s server) changePassword(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.NewPassword,
) error {
	c := identity.FormCredential(r, u.Name, in.Old)
	now, err := s.Passwords().Identify(r.Context(), c)
	if fault.Is(err, fault.Unauthorized) {
		err = fault.New(fault.Forbidden, "the old password is wrong")
	}
	if err != nil {
		return err
	}
	return envelope.WriteNothing(w, s.Users().ChangePassword(r.Context(), now.User, in.New))
}
