// Package mail is the port to services that send e-mail, and checks messages for them.
// Start reading at Message and Sender.
package mail

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"unicode"

	"ferry/shared/contact"
	"ferry/shared/lazy"
)

// MaxID is the maximum length of a Message's ID, in bytes.
const MaxID = 128

// Tag is the name of the tag that carries the ID in a provider's feedback.
const Tag = "notice"

// ErrPermanent matches (errors.Is) a failure that sending again will not change: a
// malformed address, or a server that always refuses the recipient or message.
// Any other failure may be temporary.
var ErrPermanent = errors.New("mail: refused for good")

// ErrLater matches a temporary refusal of the recipient or the message, as by greylisting: the
// server wants the message again some minutes later.
var ErrLater = errors.New("mail: refused for now")

// ErrRate and ErrQuota match a refusal that is not about the message: the provider's short-term
// or daily limit is used up.
var (
	ErrRate  = errors.New("waiting for the provider: its sending rate is used up")
	ErrQuota = errors.New("waiting for the provider: its daily quota is used up")
)

// Limit returns ErrRate or ErrQuota, whichever the error matches, or nil.
func Limit(err error) error {
	for _, limit := range []error{ErrRate, ErrQuota} {
		if errors.Is(err, limit) {
			return limit
		}
	}
	return nil
}

// Message is one e-mail to one recipient.
type Message struct {
	// ID names the message: only letters, digits and the characters . _ -. If it is sent again
	// under the same ID, the recipient's side can recognize the repeat.
	ID      string
	From    string // an address, with or without a display name
	To      string // an address
	ReplyTo string // an address, or empty
	Subject string // any text: line breaks and control characters become spaces
	Text    string
	HTML    string // the same in HTML, or empty
	// Unsubscribe is the URL where one POST stops such mail (RFC 8058), or empty.
	Unsubscribe string
}

// Sender is the port. It is safe for concurrent use.
type Sender interface {
	// Send hands the message over for delivery and returns the provider's ID for it. The message
	// may be delivered even if Send reports a failure. An error's text may quote the server's
	// answer, and with it parts of the message.
	Send(ctx context.Context, m Message) (provider string, err error)
}

// Envelope holds a Message's parsed addresses. ReplyTo is nil if there is none.
type Envelope struct{ From, To, ReplyTo *mail.Address }

// Envelope parses the addresses and converts their domains to ASCII. A recipient, reply address or
// ID that no server would accept is an ErrPermanent. A bad From is not: it is a mistake in the
// settings, which can be corrected.
func (m Message) Envelope() (e Envelope, err error) {
	if len(m.ID) > MaxID || !form().MatchString(m.ID) {
		return e, fmt.Errorf("%w: the message's ID must have only letters, digits and . _ -",
			ErrPermanent)
	}
	if e.From, err = parse(m.From); err != nil {
		return e, fmt.Errorf("the sender's address: %w", err)
	}
	if e.To, err = parse(m.To); err != nil {
		return e, fmt.Errorf("%w: the recipient's address: %w", ErrPermanent, err)
	}
	if m.Unsubscribe != "" && !validLink(m.Unsubscribe) {
		return e, fmt.Errorf("%w: the unsubscribe address is not a web address", ErrPermanent)
	}
	if m.ReplyTo == "" {
		return e, nil
	}
	if e.ReplyTo, err = parse(m.ReplyTo); err != nil {
		return e, fmt.Errorf("%w: the reply address: %w", ErrPermanent, err)
	}
	return e, nil
}

// SubjectLine returns the subject as one line. It breaks what looks like an encoded word
// (RFC 2047): that could bring line breaks back when the recipient's program decodes it.
func (m Message) SubjectLine() string {
	return strings.ReplaceAll(OneLine(m.Subject), "=?", "= ?")
}

// OneLine returns a text with each run of white space and control characters as one space.
func OneLine(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
	return strings.Join(words, " ")
}

// Valid reports whether s is one address, with or without a display name,
// that a Message may have.
func Valid(s string) bool {
	_, err := parse(s)
	return err == nil
}

// parse does not quote the address in its errors: they are logged.
func parse(s string) (*mail.Address, error) {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return nil, errors.New("control characters in an address")
	}
	a, err := mail.ParseAddress(s)
	if err != nil || strings.ContainsFunc(a.Name+a.Address, unicode.IsControl) {
		return nil, errors.New("not an e-mail address")
	}
	a.Address, err = contact.ASCIIDomain(a.Address)
	return a, err
}

// validLink accepts nothing that could end the header that contains it.
func validLink(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return r <= ' ' || r > '~' || r == '<' || r == '>'
		})
}

// form is that of an ID: words of letters, digits, _ and - with single dots between.
var form = lazy.Regexp(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$`)
