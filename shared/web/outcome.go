package web

import (
	"slices"
	"time"

	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// outcome is what became of a link, or of a file by all its links: a word, and a colour.
type outcome struct {
	word  string // the key of its text
	times int64  // of downloaded
}

// outcomes are the words, those first that a file's row shows of several.
func outcomes() []string {
	return []string{
		"failed", "bounced", "downloaded", "sending", "waiting", "delivered", "sent", "unread", "used-up", "expired", "ended",
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

// message is how far the message got that brought a link.
type message struct {
	state           string // of package notify; empty if it is not known, or there was none
	sent, delivered bool
	unread          bool // it was not looked up
}

// messageOf returns how far a message got, by what the interface says of it.
func messageOf(n wire.Notification) message {
	return message{state: n.State, sent: !n.Sent.IsZero(), delivered: !n.Delivered.IsZero()}
}

// soon is how long before its end a link warns that nobody has used it.
const soon = 2 * 24 * time.Hour

// became returns what became of a link.
func became(state links.State, to string, downloads int64, m message, left time.Duration) outcome {
	switch {
	case m.state == string(notify.Failed) && m.sent:
		return outcome{word: "bounced"}
	case m.state == string(notify.Failed):
		return outcome{word: "failed"}
	case state == links.UsedUp:
		return outcome{word: "used-up"}
	case state == links.Ended:
		return outcome{word: "ended"}
	case state.Over():
		return outcome{word: "expired"}
	case downloads > 0:
		return outcome{"downloaded", downloads}
	case to == "":
		return outcome{word: "live"}
	case m.state == string(notify.Queued), m.state == string(notify.Sending):
		return outcome{word: "sending"}
	case left > 0 && left < soon, m.state == "" && !m.unread:
		return outcome{word: "waiting"}
	case m.unread:
		return outcome{word: "unread"}
	case m.delivered:
		return outcome{word: "delivered"}
	}
	return outcome{word: "sent"}
}

// together returns what became of a file: the first of the outcomes of its links, but a download by
// any of them is one of the file.
func together(all []outcome, downloads int64) outcome {
	if downloads > 0 {
		all = append(all, outcome{"downloaded", downloads})
	}
	rank := func(o outcome) int { return slices.Index(outcomes(), o.word) }
	first := slices.MinFunc(all, func(a, b outcome) int { return rank(a) - rank(b) })
	if first.word == "downloaded" {
		first.times = downloads
	}
	return first
}
