// Package wire has the forms in which file names and checksums travel, for the
// service and its client alike. It imports nothing of Ferry. Start reading with
// CleanFileName; crc64.go has the checksum.
package wire

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxFileName is the longest name: what common file systems take.
const MaxFileName = 255

// CleanFileName makes one path element of a name: the last of it, in NFC, without
// control characters and those that could disguise it, at most MaxFileName bytes long
// with its extension kept. It returns "" if nothing is left.
func CleanFileName(name string) string {
	name = strings.Map(visible, strings.ToValidUTF8(name, "\uFFFD"))
	name = norm.NFC.String(name) // now that nothing stands between letter and accent
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSpace(shorten(strings.TrimSpace(name)))
	if strings.Trim(name, ".") == "" {
		return "" // "..", and what the cutting made of it
	}
	return name
}

// visible drops control characters, line ends, and the characters that reorder
// text, by which photo_gpj.exe can be made to look like photo_exe.jpg.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
		return -1
	}
	return r
}

func shorten(name string) string {
	if len(name) <= MaxFileName {
		return name
	}
	ext := ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 32 {
		ext = name[i:]
	}
	cut := MaxFileName - len(ext)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + ext
}

// Attachment is the Content-Disposition (RFC 6266) of a download: with an
// ASCII filename for clients that know no other, and the exact one.
func Attachment(name string) string {
	return `attachment; filename="` + ascii(name) + `"; filename*=UTF-8''` + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// ascii is the nearest name that every client can use: accents dropped, other
// scripts and what has a meaning in quotes, paths or URLs replaced. Percent
// signs go too, as some clients decode them.
func ascii(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r < 0x20 || r >= 0x7f || strings.ContainsRune(`"\/%:*?<>|;`, r):
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	s := shorten(b.String()) // one character may have become many
	if strings.Trim(s, "._ ") != "" {
		return s
	}
	// Nothing of the name is left, or an extension alone.
	return shorten("file" + strings.TrimLeft(strings.ReplaceAll(s, " ", "_"), "_"))
}
