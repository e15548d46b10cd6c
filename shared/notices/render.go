package notices

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"ferry/shared/links"
	"ferry/shared/sms"
)

//go:embed message.html
var messageSource string

var messageHTML = template.Must(template.New("message").Parse(messageSource))

// letter is what a mail says. Text and HTML are two ways to write it.
type letter struct {
	Lang, Subject, Intro string
	Facts                []fact
	Colon                string
	LinkHere, Link       string
	Button               string
	PIN, Valid           string
	Writes               string
	Quote                []string // the sender's message, line by line
	Footer               string
	Unsubscribe          string // where the recipient ends such mail, or empty
}

type fact struct{ Label, Value string }

// longestName is the most characters of a file's name in a subject.
const longestName = 80

func linkLetter(n Notice, link string) letter {
	p, sender, name := say(n.Lang), n.sender(), oneLine(n.Name)
	l := letter{
		Lang:    p.lang,
		Subject: fmt.Sprintf(p.linkSubject, sender, shorten(name, longestName)),
		Intro:   fmt.Sprintf(p.linkIntro, sender),
		Facts:   []fact{{p.file, name}, {p.size, p.length(n.Length)}},
		Colon:   p.colon,

		LinkHere: p.linkHere, Link: link, Button: p.download,
		Writes: fmt.Sprintf(p.writes, sender),
		Quote:  lines(n.Message),
		Footer: fmt.Sprintf(p.linkFooter, sender),
	}
	if n.Expires != 0 {
		l.Facts = append(l.Facts, fact{p.until, p.day(n.Expires)})
	}
	return l
}

func pinLetter(n Notice, pin string) letter {
	p := say(n.Lang)
	minutes := (n.Expires - n.Created) / 60
	return letter{
		Lang:    p.lang,
		Subject: p.pinSubject,
		Intro:   fmt.Sprintf(p.pinIntro, oneLine(n.User)),
		PIN:     pin,
		Valid:   fmt.Sprintf(p.pinValid, minutes),
		Footer:  p.pinFooter,
	}
}

func (s *Sender) letter(n Notice) (letter, error) {
	switch n.Kind {
	case Link:
		return linkLetter(n, n.link(s.Key)), nil
	case PIN:
		return pinLetter(n, s.Key.PIN(n.Nonce)), nil
	}
	return letter{}, fmt.Errorf("%w: unknown kind %q", ErrPermanent, n.Kind)
}

// text is the letter as plain text. Every line of the sender's message begins
// with "> ", so that none can pass for a line of ours.
func (l letter) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", l.Intro)
	for _, f := range l.Facts {
		fmt.Fprintf(&b, "%s%s%s\n", f.Label, l.Colon, f.Value)
	}
	if l.Link != "" {
		fmt.Fprintf(&b, "\n%s\n%s\n\n", l.LinkHere, l.Link)
	}
	if l.PIN != "" {
		fmt.Fprintf(&b, "%s\n\n%s\n\n", l.PIN, l.Valid)
	}
	if len(l.Quote) > 0 {
		fmt.Fprintf(&b, "%s\n\n> %s\n\n", l.Writes, strings.Join(l.Quote, "\n> "))
	}
	fmt.Fprintf(&b, "-- \n%s\n", l.Footer)
	return b.String()
}

func (l letter) html() (string, error) {
	var b strings.Builder
	if err := messageHTML.Execute(&b, l); err != nil {
		return "", fmt.Errorf("writing a mail as HTML: %w", err)
	}
	return b.String(), nil
}

// linkText is the text message of a link: the one that tells most among those
// that take the fewest segments. The sender's message is part of each, in
// quotation marks that it cannot close.
func linkText(n Notice, link string) string {
	p, sender, name := say(n.Lang), n.sender(), unquoted(n.Name)
	end := " " + link
	if m := unquoted(n.Message); m != "" {
		end += ` "` + m + `"`
	}
	best := ""
	for _, longest := range []int{len(name), 40, 24, 12, 0} {
		text := fmt.Sprintf(p.shared, sender, shorten(name, longest)) + end
		if longest == 0 { // no name, or no room for one
			text = fmt.Sprintf(p.sharedShort, sender) + end
		}
		if best == "" || sms.Segments(text) < sms.Segments(best) {
			best = text
		}
	}
	return best
}

// link is the download link that the notice is about.
func (n Notice) link(key links.Key) string {
	return links.Download(n.Base, n.Lang, n.Area, key.File(n.Area, n.Owner, n.File))
}

// sender is the uploader's name.
func (n Notice) sender() string {
	if name := oneLine(n.Sender); name != "" {
		return name
	}
	return oneLine(n.Owner)
}
