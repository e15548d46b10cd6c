package notify

import (
	"cmp"

	"ferry/shared/table"
)

// Events returns what records, as public events, that a link was sent or
// failed; nil if nothing is to be recorded.
func Events(r *EventRecorder) Settled {
	if r == nil {
		return nil
	}
	return func(n Notice, s State) []table.Op {
		l := EventLink{
			Notification: n.ID, Channel: string(n.Channel), To: Mask(n.To), Owner: n.Owner, ID: n.File, Name: n.Name, Sender: n.Sender,
		}
		what := LinkSent
		if s != Sent {
			what, l.Error = LinkFailed, cmp.Or(n.LastError, "unknown")
		}
		return r.Ops(n.Request, LinkEvent(what, l))
	}
}
