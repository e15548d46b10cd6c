package notices

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the most characters of a text by a user that a message repeats.
// What is stored was bounded before; this is the last guard.
const maxText = 2000

// oneLine makes a user's text fit for one line: white space and control
// characters become single spaces.
func oneLine(s string) string {
	words := strings.FieldsFunc(truncate(s), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return strings.Map(visible, strings.Join(words, " "))
}

// lines divides a user's text at whatever a mail program may show as the end
// of a line, and drops other control characters. An empty text has no lines.
func lines(s string) []string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(truncate(s))
	s = strings.TrimSpace(s)
	if s == "" {
		return nil
	}
	all := strings.Split(s, "\n")
	for i, line := range all {
		all[i] = oneLine(line)
	}
	return all
}

// unquoted is one line that cannot end a quotation.
func unquoted(s string) string { return strings.ReplaceAll(oneLine(s), `"`, "'") }

// visible drops the characters that reorder text around them, with which
// "exe.pdf" can be made to look like "fdp.exe".
func visible(r rune) rune {
	if unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff' {
		return -1
	}
	return r
}

func truncate(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText])
}

// shorten takes the middle out of a name that has more than longest
// characters; its end, with the extension, stays.
func shorten(name string, longest int) string {
	runes := []rune(name)
	if len(runes) <= longest {
		return name
	}
	const gap = "..." // the ellipsis is not in the GSM alphabet
	tail := min(longest/3, 10)
	head := max(longest-tail-len(gap), 0)
	return string(runes[:head]) + gap + string(runes[len(runes)-tail:])
}
