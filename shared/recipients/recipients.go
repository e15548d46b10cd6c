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

// Parse makes a notice for each given address, which must be good; what is
// wrong is an Invalid fault. region is that of numbers without a country code.
func Parse(mobile, address, message, region string) ([]notices.Notice, error) {
	if err := checkMessage(message); err != nil {
		return nil, err
	}
	var all []notices.Notice
	if mobile != "" {
		if strings.HasPrefix(mobile, " ") { // a + that was not escaped in the URL
			mobile = "+" + strings.TrimLeft(mobile, " +")
		}
		to, err := contact.Mobile(mobile, region)
		if err != nil {
			return nil, fault.New(fault.Invalid, "the parameter c is %v", err)
		}
		all = append(all, notices.Notice{Channel: notices.SMS, To: to, Message: message})
	}
	if address != "" {
		if err := contact.Address(address); err != nil {
			return nil, fault.New(fault.Invalid, "the parameter m is %v", err)
		}
		all = append(all, notices.Notice{Channel: notices.Mail, To: address, Message: message})
	}
	return all, nil
}

// Receipt says where an uploader hears of the first download, if that is
// wanted. A user without an address cannot; that is an Invalid fault.
func Receipt(wanted bool, u users.User, lang, base string) (files.Receipt, error) {
	if !wanted {
		return files.Receipt{}, nil
	}
	if u.Email == "" {
		return files.Receipt{}, fault.New(fault.Invalid, "notify sends you a mail, and no address of yours is registered")
	}
	return files.Receipt{To: u.Email, Lang: lang, Base: base}, nil
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
