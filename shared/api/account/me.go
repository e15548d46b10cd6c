package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/notify"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// Me is GET /me: the caller's account, and what is left of its limits.
func Me() api.Endpoint { return api.Named("me", newMe) }

// newMe returns the handler. It needs the port Table.
func newMe(p *api.Ports) http.Handler {
	h := me{p.Outbox(), p.Passwords(), p.Users()}
	return p.ByRoute(map[string]api.Handler{
		"GET /me":           h.show,
		"POST /me/password": api.WithJSON(false, h.change),
	})
}

type me struct {
	outbox    notify.Outbox
	passwords *identity.Passwords
	users     *users.Service
}

// show costs one call after authentication.
func (h me) show(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	notices, err := h.outbox.Allowances(r.Context(), u.Name)
	if err != nil {
		return err
	}
	out := wire.Account{Name: u.Name, Email: u.Email, Phone: u.Phone, Lang: u.Lang, Notices: notices}
	if u.Quota > 0 {
		out.Quota = &wire.Quota{Limit: u.Quota, Used: max(0, u.Used)}
	}
	return envelope.WriteJSON(w, http.StatusOK, out)
}

// change sets a new password, which ends all bearers and tokens. A wrong old password counts as a
// failed login. After authentication it costs two calls.
func (h me) change(w http.ResponseWriter, r *http.Request, u identity.Identity, in wire.NewPassword) error {
	c := identity.FormCredential(r, u.Name, in.Old)
	now, err := h.passwords.Identify(r.Context(), c)
	if fault.Is(err, fault.Unauthorized) {
		err = fault.New(fault.Forbidden, "the old password is wrong")
	}
	if err != nil {
		return err
	}
	return envelope.WriteNothing(w, h.users.ChangePassword(r.Context(), now.User, in.New))
}
