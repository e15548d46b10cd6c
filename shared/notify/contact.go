// Package contact checks the addresses and telephone numbers that people give.

package notify

import (
	"errors"
	"net/mail"
	"strings"
)

var (
	// ErrNumber is returned for text that is no telephone number.
	ErrNumber = errors.New("not a telephone number; write it with its country code, such as +393401234567")
	// ErrMobile is returned for a number that cannot get text messages.
	ErrMobile = errors.New("not a mobile number")
	// ErrAddress is returned for text that is not one e-mail address.
	ErrAddress = errors.New("not an e-mail address")
)

// Address checks one bare address (RFC 5322 addr-spec): no name, comment or
// list around it, and a domain with a dot.
func CheckAddress(text string) error {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || a.Name != "" || len(text) > 254 ||
		!strings.Contains(text[strings.LastIndexByte(text, '@'):], ".") {
		return ErrAddress
	}
	return nil
}
