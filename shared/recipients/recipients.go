// Package recipients reads to whom an upload's link is to be sent: c, m and i of
// the specification, section 4.3; and whether its uploader is to hear of the
// first download.
package recipients

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notices"
	"ferry/shared/users"
)

// maxMessage is the longest message to a recipient, in characters.
const maxMessage = 500

// Request is what an upload says of whom to tell; empty is nobody.
type Request struct {
	Mobile, Address, Message string
	Notify                   bool // the uploader, of the first download
}

// Context is what it says besides, or what is known of it.
type Context struct {
	Uploader users.User
	Lang     string
	Base     string // the service's address
	Region   string // of numbers without a country code
}

// Read makes a notice for each given address, and the receipt. What is wrong is
// an Invalid fault.
func Read(r Request, c Context) (s files.Sending, err error) {
	if s.Recipients, err = parse(r, c.Region); err != nil {
		return s, err
	}
	for i := range s.Recipients {
		n := &s.Recipients[i]
		n.Lang, n.Base, n.Sender, n.ReplyTo = c.Lang, c.Base, c.Uploader.Name, c.Uploader.Email
	}
	if !r.Notify {
		return s, nil
	}
	if c.Uploader.Email == "" {
		return s, fault.New(fault.Invalid, "notify sends you a mail, and no address of yours is registered")
	}
	s.Receipt = files.Receipt{To: c.Uploader.Email, Lang: c.Lang, Base: c.Base}
	return s, nil
}

func parse(r Request, region string) ([]notices.Notice, error) {
	if err := checkMessage(r.Message); err != nil {
		return nil, err
	}
	var all []notices.Notice
	if mobile := r.Mobile; mobile != "" {
		if strings.HasPrefix(mobile, " ") { // a + that was not escaped in the URL
			mobile = "+" + strings.TrimLeft(mobile, " +")
		}
		to, err := contact.Mobile(mobile, region)
		if err != nil {
			return nil, fault.New(fault.Invalid, "the parameter c is %v", err)
		}
		all = append(all, notices.Notice{Channel: notices.SMS, To: to, Message: r.Message})
	}
	if r.Address != "" {
		if err := contact.Address(r.Address); err != nil {
			return nil, fault.New(fault.Invalid, "the parameter m is %v", err)
		}
		all = append(all, notices.Notice{Channel: notices.Mail, To: r.Address, Message: r.Message})
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
