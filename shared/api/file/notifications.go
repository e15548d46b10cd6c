package file

import (
	"context"
	"time"

	"ferry/shared/files"
	"ferry/shared/notify"
)

// downloads are those by one link. Times are RFC 3339, UTC, and missing if
// there were none.
type downloads struct {
	Count       int64  `json:"count"` // whole ones, by people
	First       string `json:"first,omitempty"`
	Last        string `json:"last,omitempty"`
	Previews    int64  `json:"previews"` // fetched by robots of themselves
	LastPreview string `json:"lastPreview,omitempty"`
}

// notification is what became of one recipient's message, and of the link in it.
type notification struct {
	ID        string         `json:"id"`
	Channel   notify.Channel `json:"channel,omitempty"`
	To        string         `json:"to"`
	State     notify.State   `json:"state,omitempty"` // missing when it is not known any more
	Created   string         `json:"created,omitempty"`
	Tries     int64          `json:"tries"`
	LastError string         `json:"lastError,omitempty"`
	Provider  string         `json:"provider,omitempty"` // the provider's name of the message
	Sent      string         `json:"sent,omitempty"`     // taken by the provider
	Delivered string         `json:"delivered,omitempty"`
	Failed    string         `json:"failed,omitempty"`
	Downloads downloads      `json:"downloads"`
}

// used adds what is known of the file's links: of its own, and for its uploader
// of each recipient's.
func (h handler) used(ctx context.Context, f files.File, uploader bool, out *record) error {
	if !uploader {
		f.Recipients = nil
	}
	uses, err := h.files.Uses(ctx, f)
	if err != nil {
		return err
	}
	out.Downloads = downloadsOf(uses[0])
	if !uploader {
		return nil
	}
	out.Notify = f.Notify
	known, err := notify.States(ctx, h.ports.Table, f.Recipients)
	if err != nil {
		return err
	}
	out.Notifications = make([]notification, len(f.Recipients))
	for i, u := range uses[1:] {
		n := notify.Notice{ID: u.Recipient, To: u.To}
		state := notify.State("")
		for _, k := range known {
			if k.ID == n.ID {
				n, state = k, k.State()
			}
		}
		out.Notifications[i] = notification{
			ID: n.ID, Channel: n.Channel, To: n.To, State: state, Created: stamp(n.Created), Tries: n.Tries, LastError: n.LastError,
			Provider: n.Provider, Sent: milli(n.SentAt), Delivered: milli(n.Delivered), Failed: milli(n.FailedAt), Downloads: downloadsOf(u),
		}
	}
	return nil
}

func downloadsOf(u files.Use) downloads {
	return downloads{Count: u.Downloads, First: stamp(u.First), Last: stamp(u.Last), Previews: u.Previews, LastPreview: stamp(u.Seen)}
}

// stamp is a time in Unix seconds, of which 0 is none.
func stamp(unix int64) string { return milli(unix * 1000) }

// milli is a time in Unix milliseconds.
func milli(unix int64) string {
	if unix == 0 {
		return ""
	}
	return time.UnixMilli(unix).UTC().Format(time.RFC3339)
}
