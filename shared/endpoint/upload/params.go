package upload

import (
	"net/http"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"

	"ferry/shared/endpoint"
	"ferry/shared/fault"
	"ferry/shared/filename"
	"ferry/shared/notices"
	"ferry/shared/users"
)

// maxMessage is the longest message to a recipient, in characters.
const maxMessage = 500

// params are what a request asks for besides its body.
type params struct {
	owner      string // in whose area
	name       string // what a single file is called; empty leaves it to its part
	lang       string
	digest     []byte // SHA-256 of a single file; nil if not announced
	recipients []notices.Notice
}

func (h handler) params(r *http.Request, u users.User) (params, error) {
	q, err := endpoint.Query(r)
	if err != nil {
		return params{}, err
	}
	p := params{owner: u.Name, lang: endpoint.Lang(r, u), name: filename.Clean(q.Get("file"))}
	if q.Get("file") != "" && p.name == "" {
		return params{}, fault.New(fault.Invalid, "the query parameter file is not a file name")
	}
	if d := q.Get("d"); d != "" {
		canonical, ok := users.Canonical(d)
		if !ok {
			return params{}, fault.New(fault.Invalid, "the destination user does not exist")
		}
		p.owner = canonical
	}
	if p.digest, err = reprDigest(r.Header.Get("Repr-Digest")); err != nil {
		return params{}, err
	}
	p.recipients, err = h.recipients(q.Get("c"), q.Get("m"), q.Get("i"))
	for i := range p.recipients {
		n := &p.recipients[i]
		n.Lang, n.Base, n.Sender, n.ReplyTo = p.lang, h.ports.Base(r.Context()), u.Name, u.Email
	}
	return p, err
}

// recipients makes a notice for each given address, which must be good.
func (h handler) recipients(mobile, address, message string) ([]notices.Notice, error) {
	if err := checkMessage(message); err != nil {
		return nil, err
	}
	var all []notices.Notice
	if mobile != "" {
		to, err := e164(mobile, h.ports.PhoneRegion)
		if err != nil {
			return nil, err
		}
		all = append(all, notices.Notice{Channel: notices.SMS, To: to, Message: message})
	}
	if address != "" {
		if err := checkAddress(address); err != nil {
			return nil, err
		}
		all = append(all, notices.Notice{Channel: notices.Mail, To: address, Message: message})
	}
	return all, nil
}

func checkMessage(s string) error {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxMessage {
		return fault.New(fault.Invalid, "the message i is text of at most %d characters", maxMessage)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return fault.New(fault.Invalid, "the message i has control characters")
	}
	return nil
}

// e164 reads a number as a person of the region would write it.
func e164(mobile, region string) (string, error) {
	// A + that was not escaped in the URL arrives as a space.
	if strings.HasPrefix(mobile, " ") {
		mobile = "+" + strings.TrimLeft(mobile, " ")
	}
	n, err := phonenumbers.Parse(mobile, region)
	if err != nil || !phonenumbers.IsValidNumber(n) {
		return "", fault.New(fault.Invalid, "the query parameter c is not a telephone number; write it with its country code, such as %%2B393401234567")
	}
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.MOBILE, phonenumbers.FIXED_LINE_OR_MOBILE, phonenumbers.PERSONAL_NUMBER, phonenumbers.UNKNOWN:
		return phonenumbers.Format(n, phonenumbers.E164), nil
	}
	return "", fault.New(fault.Invalid, "the query parameter c is not a mobile number")
}

// checkAddress takes one bare address (RFC 5322 addr-spec), without a name,
// comment or list around it.
func checkAddress(s string) error {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" || len(s) > 254 || !strings.Contains(s[strings.LastIndexByte(s, '@'):], ".") {
		return fault.New(fault.Invalid, "the query parameter m is not an e-mail address")
	}
	return nil
}
