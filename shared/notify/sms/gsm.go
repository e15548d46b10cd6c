package sms

import (
	"strings"
	"unicode"
	"unicode/utf16"

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

// The two alphabets of GSM 03.38: characters of the second take two places.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€"
)

// Segments returns how many messages a provider sends, and charges, for a
// text: one holds 160 places of the GSM alphabet or, if the text has any other
// character, 70 of UTF-16; each of several holds 153 or 67.
func Segments(text string) int {
	widths, one, each := gsm(text)
	if widths == nil {
		widths, one, each = utf16Widths(text), 70, 67
	}
	total := 0
	for _, w := range widths {
		total += w
	}
	if total <= one {
		return min(total, 1)
	}
	segments, room := 1, each
	for _, w := range widths { // a character is never divided
		if w > room {
			segments, room = segments+1, each
		}
		room -= w
	}
	return segments
}

// gsm returns the places each character takes, or nil if one is not in the alphabet.
func gsm(text string) (widths []int, one, each int) {
	widths = make([]int, 0, len(text))
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsmBasic, r):
			widths = append(widths, 1)
		case strings.ContainsRune(gsmExtended, r):
			widths = append(widths, 2)
		default:
			return nil, 0, 0
		}
	}
	return widths, 160, 153
}

func utf16Widths(text string) []int {
	var widths []int
	for _, r := range text {
		widths = append(widths, max(utf16.RuneLen(r), 1))
	}
	return widths
}
