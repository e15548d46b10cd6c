package contact

import (
	"errors"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is the most bytes between two dots of a domain.
const maxLabel = 63

// ErrAddress is returned for text that is not one e-mail address.
var ErrAddress = errors.New("not an e-mail address")

// CheckAddress checks that text is one bare address (RFC 5322 addr-spec) at a domain with a dot,
// without a name, comment or list. It refuses addresses that look like others, that bypass a
// domain's mail server, and those that ask a server to relay the mail (x%y@z).
func CheckAddress(text string) error {
	a, err := mail.ParseAddress(text)
	at := strings.LastIndexByte(text, '@')
	if err != nil || a.Address != text || a.Name != "" || len(text) > 254 || Visible(text) != text ||
		strings.ContainsFunc(text[:at], notInLocal) || !isMailDomain(text[at+1:]) {
		return ErrAddress
	}
	return nil
}

// notInLocal reports characters that may not come before the @. mail.ParseAddress has checked
// the ASCII ones.
func notInLocal(r rune) bool { return r == '%' || r == '!' || r > unicode.MaxASCII && !IsWord(r) }

// isMailDomain reports whether domain is a name with a dot, not the address of a machine:
// no top-level domain begins with a digit.
func isMailDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	first, _ := utf8.DecodeRuneInString(labels[len(labels)-1])
	return len(labels) > 1 && unicode.IsLetter(first) && !slices.ContainsFunc(labels, func(label string) bool {
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
