// Package wire defines what the service and its client write alike in requests and responses: options,
// file names, checksums, sizes, a few texts and the uses of links, and which kind of file a name means.
// Start reading with CleanFileName; link.go has the options, header.go reads headers, crc.go has the
// checksums.
package wire

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxFileName is the longest name in bytes, as in common file systems.
const MaxFileName = 255

// CleanFileName returns the last path element of a name, in NFC, without control characters and
// characters that could disguise it, and shortened to MaxFileName bytes with its extension kept. A
// name that is not UTF-8 is read as Windows-1252. It returns "" if nothing is left.
func CleanFileName(name string) string {
	name = strings.Map(visible, UTF8(name))
	name = norm.NFC.String(name) // after dropping what may come between letter and accent
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSpace(shorten(strings.TrimSpace(name)))
	if strings.Trim(name, ".") == "" {
		return "" // ".", "..", and dots that are left after the cut
	}
	return name
}

// visible drops control characters, line ends, and characters that reorder text, which
// can make photo_gpj.exe look like photo_exe.jpg.
func visible(r rune) rune {
	if unicode.IsControl(r) ||
		unicode.Is(unicode.Bidi_Control, r) ||
		r == '\u2028' ||
		r == '\u2029' ||
		r == '\ufeff' {
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

// Attachment returns the Content-Disposition (RFC 6266) of a download, with an ASCII
// name for old clients, and the exact one.
func Attachment(name string) string {
	return `attachment; filename="` + ascii(name) + `"; filename*=UTF-8''` + strings.ReplaceAll(
		url.QueryEscape(name),
		"+",
		"%20",
	)
}

// ascii returns the nearest name that every client can use. It drops accents, and replaces
// other scripts, characters that are special in quotes, paths or URLs, and percent signs,
// which some clients decode.
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
	// Nothing of the name is left, or only an extension.
	return shorten("file" + strings.TrimLeft(strings.ReplaceAll(s, " ", "_"), "_"))
}
