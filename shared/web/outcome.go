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
	if o.word != "downloaded" {
		return p.T("became." + o.word)
	}
	switch o.times {
	case 1:
		return p.T("became.once")
	case 2:
		return p.T("became.twice")
	}
	return p.N("became.times", o.times)
}

// unread is the state of a message that was not looked up.
const unread = "unread"

// soon is how long before its end an unused link is shown with a warning.
const soon = 2 * 24 * time.Hour

// became returns what became of a link, as a word. The state of the message that brought it is empty
// if it is unknown, or if there was no message. left is how long the link still works; it is negative
// for one that never ends, whose end is the zero Time.
func became(
	link links.State,
	to string,
	downloads int64,
	m wire.Notification,
	left time.Duration,
) string {
	message := notify.State(m.State)
	switch {
	case message == notify.Failed && !m.Sent.IsZero():
		return "bounced"
	case message == notify.Failed:
		return "failed"
	case link == links.UsedUp:
		return "used-up"
	case link == links.Ended:
		return "ended"
	case link.Over():
		return "expired"
	case link.Waits():
		return strings.ReplaceAll(string(link), " ", "-")
	case downloads > 0:
		return "downloaded"
	case to == "":
		return "live"
	case message == notify.Queued, message == notify.Sending:
		return "sending"
	case left > 0 && left < soon, message == "":
		return "waiting"
	case message == unread:
		return unread
	case !m.Delivered.IsZero():
		return "delivered"
	}
	return "sent"
}

// together returns what became of a file: the word of its links that has the highest priority. A
// download by any link counts as one of the file.
func together(all []string, downloads int64) outcome {
	if downloads > 0 {
		all = append(all, "downloaded")
	}
	rank := func(word string) int {
		if i := slices.Index(outcomes(), word); i >= 0 {
			return i
		}
		return slices.Index(outcomes(), "waiting") // a state that waits
	}
	first := slices.MinFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return outcome{first, downloads}
}
