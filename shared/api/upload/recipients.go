package upload

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/auth"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/notify"
)

// maxMessage is the longest message to a recipient, in characters.
const maxMessage = 500

// recipientsRequest is to whom an upload's link is to be sent (c, m and i of the
// specification, section 4.3; empty is nobody), and whether its uploader wants to
// hear of the first download.
type recipientsRequest struct {
	Mobile, Address, Message string
	Notify                   bool // the uploader, of the first download
}

// recipientsContext is what it says besides, or what is known of it.
type recipientsContext struct {
	Uploader auth.User
	Lang     string
	Base     string // the service's address
	Region   string // of numbers without a country code
}

// readRecipients makes a notice for each given address, and the receipt. What is wrong is
// an Invalid fault.
func readRecipients(r recipientsRequest, c recipientsContext) (s files.Sending, err error) {
	if s.Recipients, err = parseRecipients(r, c.Region); err != nil {
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
		return s, envelope.NewFault(envelope.Invalid, "notify sends you a mail, and no address of yours is registered")
	}
	s.Receipt = files.Receipt{To: c.Uploader.Email, Lang: c.Lang, Base: c.Base}
	return s, nil
}

func parseRecipients(r recipientsRequest, region string) ([]files.Message, error) {
	if err := checkMessage(r.Message); err != nil {
		return nil, err
	}
	var all []files.Message
	if mobile := r.Mobile; mobile != "" {
		if strings.HasPrefix(mobile, " ") { // a + that was not escaped in the URL
			mobile = "+" + strings.TrimLeft(mobile, " +")
		}
		to, err := notify.ParseMobile(mobile, region)
		if err != nil {
			return nil, envelope.NewFault(envelope.Invalid, "the parameter c is %v", err)
		}
		all = append(all, files.Message{Channel: files.SMS, To: to, Text: r.Message})
	}
	if r.Address != "" {
		if err := notify.CheckAddress(r.Address); err != nil {
			return nil, envelope.NewFault(envelope.Invalid, "the parameter m is %v", err)
		}
		all = append(all, files.Message{Channel: files.Mail, To: r.Address, Text: r.Message})
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
