package web

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/notify/inbox"
)

// Inbox returns the page that shows the messages that one machine keeps instead of sending them.
func Inbox(p *api.Ports) inbox.Page {
	s := newSite(p)
	return func(w http.ResponseWriter, r *http.Request, messages []inbox.Message) error {
		v := s.visit(r)
		v.w = w
		v.r = r
		v.frames = true
		return known(func(v *visit) error {
			return v.show(http.StatusOK, "inbox", messages)
		})(v)
	}
}
