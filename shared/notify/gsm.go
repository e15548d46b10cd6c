package notify

import (
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/runes"
	"golang.org/x/text/unicode/norm"
)

// GSM rewrites a text in the characters of the GSM alphabet where that does not change its meaning:
// it replaces typographic quotation marks, dashes, spaces and dots with plain ones, and drops
// accents that the alphabet lacks. Other characters stay.
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
	for _, s := range []struct{ fancy, plain string }{
		{"‘’‚‛‹›′´`ʼ", "'"},
		{"“”„‟«»″", `"`},
		{"‐‑‒–—―−", "-"},
		{"…", "..."},
		{"•·", "*"},
		{"œ", "oe"},
		{"Œ", "OE"},
		{"\t\u00a0\u2007\u2009\u202f", " "},
	} {
		if strings.ContainsRune(s.fancy, r) {
			return s.plain
		}
	}
	// A letter with accents is replaced by the bare letter.
	if letter := runes.Remove(runes.In(unicode.Mn)).String(norm.NFD.String(string(r))); len(letter) == 1 {
		return letter
	}
	return string(r)
}

// The two alphabets of GSM 03.38: characters of the second take two places.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€"
)

// Segments returns how many messages a provider sends, and charges, for a text. A single message
// holds 160 places of the GSM alphabet or, if the text has any other character, 70 of UTF-16. If
// there are several, each holds 153 or 67.
func Segments(text string) int {
	width := gsmWidth
	one := 160
	each := 153
	if strings.ContainsFunc(text, func(r rune) bool { return gsmWidth(r) == 0 }) {
		width = utf16Width
		one = 70
		each = 67
	}
	total := 0
	segments := 1
	room := each
	for _, r := range text {
		w := width(r)
		total += w
		if w > room { // a character is never split
			segments, room = segments+1, each
		}
		room -= w
	}
	if total <= one {
		return min(total, 1)
	}
	return segments
}

// gsmWidth returns how many places a character takes, 0 if it is not in the alphabet.
func gsmWidth(r rune) int {
	switch {
	case strings.ContainsRune(gsmBasic, r):
		return 1
	case strings.ContainsRune(gsmExtended, r):
		return 2
	}
	return 0
}

func utf16Width(r rune) int { return max(utf16.RuneLen(r), 1) }
