package contact

import (
	"errors"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxLabel is the most bytes between two dots of a domain.
const maxLabel = 63

// maxBytes is the most bytes of an address (RFC 5321, 4.5.3.1.3).
const maxBytes = 254

var (
	// ErrAddress is returned for text that is not one e-mail address.
	ErrAddress = errors.New("not an e-mail address")
	// ErrLocal is returned for an address whose part before the @ must be ASCII but is not.
	ErrLocal = errors.New("an address with letters before the @ that are not ASCII, which the mail server does not take")
)

// ParseAddress returns text with its domain in ASCII, if it is one bare address (RFC 5322
// addr-spec) at a domain with a dot, without a name, comment or list. It refuses addresses that
// look like others, that bypass a domain's mail server, or that ask a server to relay the mail
// (x%y@z).
func ParseAddress(text string) (string, error) {
	a, err := mail.ParseAddress(text)
	at := strings.LastIndexByte(text, '@')
	if err != nil ||
		a.Address != text ||
		a.Name != "" ||
		len(text) > maxBytes ||
		Visible(text) != text ||
		strings.ContainsFunc(text[:at], notInLocal) || !isMailDomain(text[at+1:]) {
		return "", ErrAddress
	}
	if text, err = ASCIIDomain(text); err != nil || len(text) > maxBytes {
		return "", ErrAddress
	}
	return text, nil
}

// ASCIIDomain returns an address with the labels of its domain as A-labels (RFC 5890, 2.3.2.1), so
// that any server understands them. A domain that is ASCII already stays as it is.
func ASCIIDomain(address string) (string, error) {
	at := strings.LastIndexByte(address, '@') + 1
	if IsASCII(address[at:]) {
		return address, nil
	}
	domain, err := idna.Lookup.ToASCII(address[at:])
	if err != nil {
		return "", ErrAddress
	}
	return address[:at] + domain, nil
}

// CheckLocal returns ErrLocal unless the part before the @ is ASCII.
func CheckLocal(address string) error {
	if at := strings.LastIndexByte(address, '@'); !IsASCII(address[:max(at, 0)]) {
		return ErrLocal
	}
	return nil
}

// Canonical drops the differences between addresses that do not matter to any server: the case, and
// the form of the domain.
func Canonical(address string) string {
	address = strings.TrimSpace(address)
	if ascii, err := ASCIIDomain(address); err == nil {
		address = ascii
	}
	return strings.ToLower(address)
}

// Readable returns an address for people, with its domain in its own script.
func Readable(address string) string {
	at := strings.LastIndexByte(address, '@') + 1
	domain, err := idna.Display.ToUnicode(address[at:])
	if err != nil {
		return address
	}
	return address[:at] + domain
}

// IsASCII reports whether a text has only ASCII characters.
func IsASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// notInLocal reports characters that may not come before the @. mail.ParseAddress has checked
// the ASCII ones.
func notInLocal(r rune) bool {
	return r == '%' || r == '!' || r > unicode.MaxASCII && !IsWord(r)
}

// isMailDomain reports whether domain is a name with a dot, not the address of a machine:
// no top-level domain begins with a digit.
func isMailDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	first, _ := utf8.DecodeRuneInString(labels[len(labels)-1])
	return len(labels) > 1 &&
		unicode.IsLetter(first) &&
		!slices.ContainsFunc(labels, func(label string) bool {
			return label == "" || len(label) > maxLabel || strings.Trim(label, "-") != label ||
				strings.ContainsFunc(label, func(r rune) bool { return !IsWord(r) && r != '-' })
		})
}

// IsWord reports whether a character belongs to words of a script: letters, marks and digits.
func IsWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// maxMarks is the most accents on one character. More would cover nearby lines.
const maxMarks = 6

// Visible drops invisible characters that change how others look or are read: those
// that reorder text, so that "exe.pdf" can look like "fdp.exe", and those that
// split a word for programs but not for people.
func Visible(s string) string {
	var b strings.Builder
	before, marks := ' ', 0
	for _, r := range s {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		if marks > maxMarks || hidden(r, before) {
			continue
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// hidden reports whether a character is invisible and must go. Joiners and variants
// may stay after emoji and letters of other scripts.
func hidden(r, before rune) bool {
	const zwnj, zwj = '\u200c', '\u200d'
	switch {
	case unicode.Is(unicode.Variation_Selector, r):
		return before <= unicode.MaxASCII && !strings.ContainsRune("0123456789#*", before) // of keycaps
	case r == zwnj || r == zwj:
		return before <= unicode.MaxASCII
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point)
}
