package notify

import (
	"cmp"
	"embed"
	"fmt"
	"html"
	"path"
	"strconv"
	"strings"

	"ferry/shared/contact"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/lazy"
	"ferry/shared/notify/mail"
)

// letter is the content of a mail. Its methods text and html write it.
type letter struct {
	Texts
	Subject, Intro string
	Facts          []fact
	PIN, Valid     string
	Link           string // or empty
	Here, Button   string // before the link, and on it
	Note           string // after it, or empty
	Writes         string
	Quote          []string // the sender's message, line by line
	Footer         string
	Unsubscribe    string // where the recipient unsubscribes, or empty
}

type fact struct{ Label, Value string }

// The maximum length of a name in a subject, in characters.
const (
	longestName   = 80
	longestSender = 40
)

func linkLetter(t Texts, n Notice, service, link string) letter {
	sender := n.sender()
	intro := t.LinkIntro
	if n.Files > 0 {
		intro = fmt.Sprintf(t.BundleIntro, "%s", t.Count(n.Files, t.Files))
	}
	l := letter{
		Texts: t,
		Subject: t.subject(
			fmt.Sprintf(strings.TrimSuffix(intro, "."), cut(sender, longestSender, 0)),
			fileName(n.Name),
		),
		Intro:  fmt.Sprintf(intro, sender),
		Facts:  n.facts(t),
		Link:   link,
		Here:   t.LinkHere,
		Button: t.Download,
		Note:   t.NoLogin,
		Writes: fmt.Sprintf(t.SenderWrites, sender),
		Quote:  quote(n.Message),
		Footer: fmt.Sprintf(t.LinkFooter, sender, service),
	}
	if isAddress(n.ReplyTo) && n.ReplyTo != sender {
		l.Facts = append([]fact{{t.From, n.ReplyTo}}, l.Facts...)
	}
	if n.Expires != 0 {
		l.Facts = append(l.Facts, fact{t.Until, t.WriteTime(n.Expires, t.DateTime)})
	}
	if n.Limit != 0 {
		l.Facts = append(l.Facts, fact{t.Allowed, strconv.FormatInt(n.Limit, 10)})
	}
	if n.Protected {
		l.Note = fmt.Sprintf(t.NeedsPassword, sender)
	}
	return l
}

// Terms are what a notice says of the options of its link.
type Terms struct {
	Limit     int64 `json:"limit,omitempty"`     // downloads that the link allows; 0 means no limit
	Protected bool  `json:"protected,omitempty"` // the link needs a password
}

func termsOf(o files.Options) Terms {
	return Terms{Limit: o.Limit, Protected: o.Password != ""}
}

// receiptLetter tells the uploader about the first download. The notice was created at the time of that download.
func receiptLetter(t Texts, n Notice) letter {
	which := t.OwnLink
	if n.Recipient != "" {
		which = fmt.Sprintf(t.SentTo, oneLine(contact.Readable(n.Recipient)))
	}
	return letter{
		Texts:   t,
		Subject: t.subject(t.ReceiptSubject, fileName(n.Name)),
		Intro:   t.ReceiptIntro,
		Facts: append(
			n.facts(t),
			fact{t.When, t.WriteTime(n.Created, t.DateTime)},
			fact{t.LinkWord, which},
		),
		Footer: t.ReceiptFooter,
	}
}

// arrivedLetter tells the maker of a request what guests have sent.
func arrivedLetter(t Texts, n Notice) letter {
	var from []string
	for _, name := range n.From {
		from = append(from, cmp.Or(display(oneLine(name)), t.NoName))
	}
	facts := []fact{
		{t.ArrivedWord, t.Count(n.Files, t.Files)},
		{t.From, strings.Join(from, ", ")},
		{t.Size, t.WriteSize(n.Length, false)},
	}
	if title := display(oneLine(n.Name)); title != "" {
		facts = append([]fact{{t.RequestWord, title}}, facts...)
	}
	return letter{
		Texts:   t,
		Subject: t.subject(t.ArrivedSubject, cut(oneLine(n.Name), longestName, 0)),
		Intro:   t.ArrivedIntro,
		Facts:   facts,
		Link:    n.page("files?request=" + n.By),
		Here:    t.ArrivedHere,
		Button:  t.ArrivedShow,
		Footer:  t.ArrivedFooter,
	}
}

func pinLetter(t Texts, n Notice, service, pin, link string) letter {
	minutes := (n.Expires - n.Created) / 60
	return letter{
		Texts:   t,
		Subject: t.PINSubject,
		Intro:   fmt.Sprintf(t.PINIntro, oneLine(n.User), service),
		PIN:     pin,
		Valid:   fmt.Sprintf(t.PINValid, t.Count(minutes, t.Minutes)),
		Link:    link,
		Here:    t.PINHere,
		Button:  t.Choose,
		Footer:  t.PINFooter,
	}
}

func inviteLetter(t Texts, n Notice, service, link string) letter {
	return letter{
		Texts:   t,
		Subject: fmt.Sprintf(t.InviteSubject, service),
		Intro:   fmt.Sprintf(t.InviteIntro, oneLine(n.User), service),
		Link:    link,
		Here:    t.InviteHere,
		Button:  t.Choose,
		Note:    fmt.Sprintf(t.InviteValid, t.WriteTime(n.Expires, t.DateTime)),
		Footer:  t.InviteFooter,
	}
}

// subject joins a text and a name with a colon. Without a name there is no colon.
func (t Texts) subject(text, name string) string {
	return spaced(strings.TrimRight(text+t.Colon+display(name), ": \u00a0"))
}

// fileName returns a file's name for a subject. It drops an extension that a program would take for
// the end of a domain.
func fileName(name string) string {
	name = shorten(oneLine(name), longestName)
	marked := unlinked(name)
	if ext := path.Ext(name); strings.HasSuffix(marked, mark+ext) {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// facts returns the name and the size of the file, and what is in a bundle.
func (n Notice) facts(t Texts) (all []fact) {
	if name := display(oneLine(n.Name)); name != "" {
		all = append(all, fact{t.File, name})
	}
	all = append(all, fact{t.Size, t.WriteSize(n.Length, false)})
	label := t.Contents
	for _, name := range n.First {
		all = append(all, fact{label, display(shorten(oneLine(name), longestName))})
		label = ""
	}
	if more := n.Files - int64(len(n.First)); more > 0 {
		all = append(all, fact{label, fmt.Sprintf(t.More, t.Count(more, t.Files))})
	}
	return all
}

// page returns the address of a page. Pages are next to the API, whose path ends in v1.
func (n Notice) page(name string) string { return strings.TrimSuffix(n.Base, "v1") + name }

// display makes a user's line of text safe to show beside our words.
func display(s string) string { return isolated(unlinked(s)) }

// isAddress reports whether s is a bare address of plain characters, which may be
// shown as it is.
func isAddress(s string) bool {
	return mail.Valid(s) && plainAddress().MatchString(s)
}

func (s *Sender) letter(n Notice) (l letter, err error) {
	t := TextsOf(n.Lang)
	switch n.Kind {
	case Link:
		l = linkLetter(t, n, s.Service, n.link(s.Key))
	case Receipt:
		l = receiptLetter(t, n)
	case Arrived:
		l = arrivedLetter(t, n)
	case Missing:
		l = missingLetter(t, n)
	case PIN: // neither a PIN nor an invitation has an unsubscribe link
		return pinLetter(t, n, s.Service, s.Key.PIN(n.Nonce), n.changeLink(s.Key)), nil
	case Invite:
		return inviteLetter(t, n, s.Service, n.changeLink(s.Key)), nil
	default:
		return l, fmt.Errorf("%w: unknown kind %q", ErrPermanent, n.Kind)
	}
	l.Unsubscribe = keys.StopLink(n.Base, l.Lang, s.Key.Stop(contact.Canonical(n.To)))
	return l, nil
}

// text is the letter as plain text. Every line of the sender's message begins
// with "> ", so that none looks like one of ours.
func (l letter) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", l.Intro)
	for _, f := range l.Facts {
		if f.Label == "" {
			fmt.Fprintf(&b, "  %s\n", f.Value)
			continue
		}
		fmt.Fprintf(&b, "%s%s%s\n", f.Label, l.Colon, f.Value)
	}
	if l.PIN != "" {
		fmt.Fprintf(&b, "%s\n\n%s\n\n", l.PIN, l.Valid)
	}
	if l.Link != "" {
		if len(l.Facts) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n%s\n", l.Here, l.Link)
		if l.Note != "" {
			fmt.Fprintf(&b, "\n%s\n", l.Note)
		}
	}
	if len(l.Quote) > 0 {
		fmt.Fprintf(&b, "\n%s\n\n> %s\n", l.Writes, strings.Join(l.Quote, "\n> "))
	}
	fmt.Fprintf(&b, "\n-- \n%s\n", l.Footer)
	if l.Unsubscribe != "" {
		fmt.Fprintf(&b, "\n%s%s\n%s\n", l.Stop, strings.TrimRight(l.Colon, " "), l.Unsubscribe)
	}
	return spaced(b.String())
}

// linkText returns the text message for a link. Of the texts with the fewest segments it chooses
// the one that says the most. Each text contains the sender's message, in quotation marks that the
// message cannot close.
func linkText(n Notice, link string) string {
	t, best := TextsOf(n.Lang), ""
	for _, longest := range []int{maxText, 40, 24, 12, 0} {
		for _, spell := range []func(string) string{asIs, GSM} {
			text := linkTextOf(n, t, link, longest, spell)
			if best == "" || Segments(text) < Segments(best) {
				best = text
			}
		}
	}
	return best
}

func asIs(s string) string { return s }

// linkTextOf is the text message with up to longest characters of the file's name.
func linkTextOf(n Notice, t Texts, link string, longest int, spell func(string) string) string {
	said := func(s string) string { return display(unquoted(spell(s))) }
	sender := n.sender()
	name := said(shorten(oneLine(n.Name), longest))
	message := said(n.Message)
	text := fmt.Sprintf(t.Shared, sender, name)
	if name == "" || longest == 0 { // no name, or no room for one
		text = fmt.Sprintf(strings.TrimSuffix(t.LinkIntro, ".")+":", sender)
	}
	text += " " + link
	if message != "" {
		text += ` "` + message + `"`
	}
	return spaced(text)
}

// link is the recipient's own download link of the file that the notice is about.
func (n Notice) link(key keys.LinkKey) string {
	return keys.DownloadLink(n.Base, n.Lang, n.Area) + key.Of(n.key).
		Recipient(n.Area, n.Owner, n.File, n.ID)
}

// changeLink is the link to choosing a password.
func (n Notice) changeLink(key keys.LinkKey) string {
	return keys.ChangeLink(n.Base, TextsOf(n.Lang).Lang, key.Change(n.Nonce))
}

// sender is the uploader's name, as it is shown. An address stays as it is.
func (n Notice) sender() string {
	name := cmp.Or(oneLine(n.Sender), oneLine(n.Owner))
	if isAddress(name) {
		return name
	}
	return display(name)
}

// html returns the letter in HTML. Styles are set on each element, as many mail programs
// ignore all others, and nothing is loaded. On phones that support it, facts are shown
// below their labels, so that no address is split. It uses no template package, which
// would make each program a third larger.
func (l letter) html() string {
	var m markup
	m.add("head", l.Lang, l.Subject, l.Intro)
	if len(l.Facts) > 0 {
		m.add("facts")
		for _, f := range l.Facts {
			label := f.Label + l.Colon
			if f.Label == "" {
				label = ""
			}
			m.add("fact", label, f.Value)
		}
		m.WriteString("</table>\n")
	}
	if l.PIN != "" {
		m.add("pin", l.PIN, l.Valid)
	}
	if l.Link != "" {
		m.add("link", l.Link, l.Button, l.Link, l.Link)
		if l.Note != "" {
			m.add("note", l.Note)
		}
	}
	if len(l.Quote) > 0 {
		m.add("writes", l.Writes)
		for _, line := range l.Quote {
			m.add("quote", cmp.Or(line, "\u00a0")) // it gives an empty line its height
		}
		m.WriteString("</blockquote>\n")
	}
	m.add("footer", l.Footer)
	if l.Unsubscribe != "" {
		m.add("stop", l.Unsubscribe, l.Stop)
	}
	m.WriteString("</div>\n</body>\n</html>\n")
	return m.String()
}

// fragments are the pieces of a letter in HTML.
//
//go:embed letter/*.html
var fragments embed.FS

// markup is HTML under construction.
type markup struct{ strings.Builder }

// add appends a fragment; each value takes the place of a %s, as text.
func (m *markup) add(fragment string, values ...string) {
	format, _ := fragments.ReadFile("letter/" + fragment + ".html") // the golden files cover every fragment
	escaped := make([]any, len(values))
	for i, v := range values {
		escaped[i] = marked().ReplaceAllString(html.EscapeString(v), "<span>$1</span>")
	}
	fmt.Fprintf(m, string(format), escaped...)
}

var (
	plainAddress = lazy.Regexp(`^[a-zA-Z0-9._+@-]+$`)
	marked       = lazy.Regexp(mark + "(.)")
)
