package upload

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// params are what a request asks for besides its body.
type params struct {
	owner   string // in whose area
	name    string // what a single file is called; empty leaves it to its part
	lang    string
	digest  []byte // SHA-256 of a single file; nil if not announced
	sending files.Sending
}

func (h handler) params(r *http.Request, u auth.User) (params, error) {
	q, err := api.Query(r)
	if err != nil {
		return params{}, err
	}
	p := params{lang: api.Lang(r, u), name: wire.CleanFileName(q.Get("file"))}
	if q.Get("file") != "" && p.name == "" {
		return params{}, envelope.NewFault(envelope.Invalid, "the query parameter file is not a file name")
	}
	if p.owner, err = owner(q.Get("d"), u); err != nil {
		return params{}, err
	}
	if p.digest, err = reprDigest(r.Header.Get("Repr-Digest")); err != nil {
		return params{}, err
	}
	notify := q.Get("notify")
	if notify != "" && notify != "0" && notify != "1" {
		return params{}, envelope.NewFault(envelope.Invalid, "the query parameter notify is 1 or 0")
	}
	to := recipients{q.Get("c"), q.Get("m"), q.Get("i"), notify == "1"}
	p.sending, err = h.sending(r, u, to, p.lang)
	return p, err
}

// owner is in whose area the files come: the caller's, or that of the user named in d.
func owner(d string, u auth.User) (string, error) {
	if d == "" {
		return u.Name, nil
	}
	canonical, ok := auth.CanonicalName(d)
	if !ok {
		return "", envelope.NewFault(envelope.Invalid, "the destination user does not exist")
	}
	return canonical, nil
}

// maxMessage is the longest message to a recipient, in characters.
const maxMessage = 500

// recipients are those to whom an upload's link is to be sent (c, m and i of the
// specification, section 4.3; empty is nobody), and whether its uploader wants to hear of the
// first download.
type recipients struct {
	mobile, address, message string
	notify                   bool
}

// sending makes a notice for each recipient, and the receipt. What is wrong is an
// Invalid fault.
func (h handler) sending(r *http.Request, u auth.User, to recipients, lang string) (s files.Sending, err error) {
	if s.Recipients, err = to.messages(h.ports.PhoneRegion); err != nil {
		return s, err
	}
	base := h.ports.Base(r.Context())
	for i := range s.Recipients {
		n := &s.Recipients[i]
		n.Text, n.Lang, n.Base, n.Sender, n.ReplyTo = to.message, lang, base, u.Name, u.Email
	}
	if !to.notify {
		return s, nil
	}
	if u.Email == "" {
		return s, envelope.NewFault(envelope.Invalid, "notify sends you a mail, and no address of yours is registered")
	}
	s.Receipt = files.Receipt{To: u.Email, Lang: lang, Base: base}
	return s, nil
}

// messages are those to the recipients; region is that of numbers without a country code.
func (to recipients) messages(region string) ([]files.Message, error) {
	if err := checkMessage(to.message); err != nil {
		return nil, err
	}
	var all []files.Message
	if mobile := to.mobile; mobile != "" {
		if strings.HasPrefix(mobile, " ") { // a + that was not escaped in the URL
			mobile = "+" + strings.TrimLeft(mobile, " +")
		}
		number, err := notify.ParseMobile(mobile, region)
		if err != nil {
			return nil, envelope.NewFault(envelope.Invalid, "the parameter c is %v", err)
		}
		all = append(all, files.Message{Channel: files.SMS, To: number})
	}
	if to.address != "" {
		if err := notify.CheckAddress(to.address); err != nil {
			return nil, envelope.NewFault(envelope.Invalid, "the parameter m is %v", err)
		}
		all = append(all, files.Message{Channel: files.Mail, To: to.address})
	}
	return all, nil
}

func checkMessage(s string) error {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxMessage {
		return envelope.NewFault(envelope.Invalid, "the message i is text of at most %d characters", maxMessage)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return envelope.NewFault(envelope.Invalid, "the message i has control characters")
	}
	return nil
}
