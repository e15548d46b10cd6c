package sms

import (
	"strings"
	"unicode/utf16"
)

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
