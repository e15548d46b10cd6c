package web

import (
	"slices"
	"strings"
	"time"

	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// outcome is what became of a link, or of a file through all its links: a word, and a colour.
type outcome struct {
	word  string // the key of its text
	times int64  // how often downloaded
}

// outcomes returns the words in order of priority: if several apply, a file's row shows the first.
func outcomes() []string {
	return []string{
		"failed", "bounced", "downloaded", "sending", "waiting", "delivered", "sent", unread, "used-up", "expired", "ended",
		"new", "live",
	}
}

// Colour returns the class of the outcome.
func (o outcome) Colour() string {
	switch o.word {
	case "failed", "bounced":
		return " bad"
	case "downloaded", "delivered", "sent":
		return " good"
	case "waiting", "used-up":
		return " warn"
	}
	return ""
}

// Became returns the words of an outcome.
func (p page) Became(o outcome) string {
	switch {
	case o.word == "downloaded" && o.times == 1:
		return p.T("became.once")
	case o.word == "downloaded" && o.times == 2:
		return p.T("became.twice")
	case o.word == "downloaded":
		return p.N("became.times", o.times)
	}
	return p.T("became." + o.word)
}

// unread is the state of a message that was not looked up.
const unread = "unread"

// soon is how long before its end an unused link is shown with a warning.
const soon = 2 * 24 * time.Hour

// became returns what became of a link. The state of the message that brought it is empty if it is
// unknown, or if there was no message.
func became(state links.State, to string, downloads int64, m wire.Notification, left time.Duration) outcome {
	switch {
	case m.State == string(notify.Failed) && !m.Sent.IsZero():
		return outcome{word: "bounced"}
	case m.State == string(notify.Failed):
		return outcome{word: "failed"}
	case state == links.UsedUp:
		return outcome{word: "used-up"}
	case state == links.Ended:
		return outcome{word: "ended"}
	case state.Over():
		return outcome{word: "expired"}
	case state.Waits():
		return outcome{word: strings.ReplaceAll(string(state), " ", "-")}
	case downloads > 0:
		return outcome{"downloaded", downloads}
	case to == "":
		return outcome{word: "live"}
	case m.State == string(notify.Queued), m.State == string(notify.Sending):
		return outcome{word: "sending"}
	case left > 0 && left < soon, m.State == "":
		return outcome{word: "waiting"}
	case m.State == unread:
		return outcome{word: unread}
	case !m.Delivered.IsZero():
		return outcome{word: "delivered"}
	}
	return outcome{word: "sent"}
}

// together returns what became of a file: the outcome of its links that has the highest priority. A
// download by any link counts as one of the file.
func together(all []outcome, downloads int64) outcome {
	if downloads > 0 {
		all = append(all, outcome{"downloaded", downloads})
	}
	rank := func(o outcome) int {
		if i := slices.Index(outcomes(), o.word); i >= 0 {
			return i
		}
		return slices.Index(outcomes(), "waiting") // a state that waits
	}
	first := slices.MinFunc(all, func(a, b outcome) int { return rank(a) - rank(b) })
	if first.word == "downloaded" {
		first.times = downloads
	}
	return first
}
