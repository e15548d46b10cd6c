package upload

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/contact"
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
		if strings.HasPrefix(mobile, " ") { // a + that was not escaped in the URL
			mobile = "+" + strings.TrimLeft(mobile, " +")
		}
		to, err := contact.Mobile(mobile, h.ports.PhoneRegion)
		if err != nil {
			return nil, fault.New(fault.Invalid, "the query parameter c is %v", err)
		}
		all = append(all, notices.Notice{Channel: notices.SMS, To: to, Message: message})
	}
	if address != "" {
		if err := contact.Address(address); err != nil {
			return nil, fault.New(fault.Invalid, "the query parameter m is %v", err)
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
