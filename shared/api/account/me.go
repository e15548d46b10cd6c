package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// Me is GET /me: the caller's account, and what is left of its limits.
func Me() api.Endpoint { return api.Named("me", newMe) }

// newMe returns the handler. It needs the port Table. After authentication a request
// costs one call.
func newMe(p *api.Ports) http.Handler {
	outbox := notify.NewOutbox(p.Ports, p.Notices, p.PublicURL, p.Events)
	return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.Identity) error {
		today, hour, err := outbox.Allowances(r.Context(), u.Name)
		if err != nil {
			return err
		}
		notices := wire.Notices{Hour: hour, Day: today}
		out := wire.Account{Name: u.Name, Email: u.Email, Phone: u.Phone, Lang: u.Lang, Notices: notices}
		if u.Quota > 0 {
			out.Quota = &wire.Quota{Limit: u.Quota, Used: max(0, u.Used)}
		}
		return envelope.WriteJSON(w, http.StatusOK, out)
	})
}
