package sms

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// GSM writes a text with the characters of the GSM alphabet as far as it can
// without changing what it says: plain quotation marks, dashes, spaces and
// points for the typographic ones, and letters without those accents that the
// alphabet lacks. What has no such stand-in stays.
func GSM(text string) string {
	var b strings.Builder
	for _, r := range norm.NFC.String(text) {
		b.WriteString(standIn(r))
	}
	return b.String()
}

func standIn(r rune) string {
	if strings.ContainsRune(gsmBasic+gsmExtended, r) {
		return string(r)
	}
	if plain, ok := typographic(r); ok {
		return plain
	}
	// The letter without its accents, if that is all there is to it.
	letter := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(string(r)))
	if len(letter) == 1 {
		return letter
	}
	return string(r)
}

func typographic(r rune) (plain string, ok bool) {
	switch r {
	case '‘', '’', '‚', '‛', '‹', '›', '′', '´', '`', 'ʼ':
		return "'", true
	case '“', '”', '„', '‟', '«', '»', '″':
		return `"`, true
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return "-", true
	case '…':
		return "...", true
	case '•', '·':
		return "*", true
	case 'œ':
		return "oe", true
	case 'Œ':
		return "OE", true
	case '\t', '\u00a0', '\u2007', '\u2009', '\u202f':
		return " ", true
	}
	return "", false
}
