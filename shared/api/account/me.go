package account

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/notify"
)

// Me is GET /me: the caller's account, and what is left of its limits.
func Me() api.Endpoint { return api.Named("me", newMe) }

// profile is an account as the answer shows it.
type profile struct {
	Name    string  `json:"name"`
	Email   string  `json:"email,omitempty"`
	Phone   string  `json:"phone,omitempty"`
	Lang    string  `json:"lang,omitempty"` // missing if the account has none
	Quota   *quota  `json:"quota,omitempty"`
	Notices notices `json:"notices"`
}

// quota is how many bytes both areas may hold together, and how many of them files and running
// uploads take.
type quota struct {
	Limit int64 `json:"limit"`
	Used  int64 `json:"used"`
}

// notices says how many the caller may still cause. A missing field means no limit.
type notices struct {
	Hour *notify.Allowance `json:"hour,omitempty"`
	Day  *notify.Allowance `json:"day,omitempty"`
}

// newMe returns the handler. It needs the port Table. After authentication a request
// costs one call.
func newMe(p *api.Ports) http.Handler {
	outbox := notify.NewOutbox(p.Ports, p.Notices, p.PublicURL, p.Events)
	return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.Identity) error {
		today, hour, err := outbox.Allowances(r.Context(), u.Name)
		if err != nil {
			return err
		}
		out := profile{Name: u.Name, Email: u.Email, Phone: u.Phone, Lang: u.Lang, Notices: notices{hour, today}}
		if u.Quota > 0 {
			out.Quota = &quota{u.Quota, max(0, u.Used)}
		}
		return envelope.WriteJSON(w, http.StatusOK, out)
	})
}
