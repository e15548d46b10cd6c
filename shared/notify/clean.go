package notify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// maxText is the most characters of a text by a user that a message repeats.
// What is stored was bounded before; this is the last guard.
const maxText = 2000

// oneLine makes a user's text fit for one line: white space and control
// characters become single spaces.
func oneLine(s string) string {
	words := strings.FieldsFunc(visible(truncate(s)), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return strings.Join(words, " ")
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

// unquoted is one line that cannot end a quotation, nor seem to.
func unquoted(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"“”„‟«»″＂", r) {
			return '\''
		}
		return r
	}, oneLine(s))
}

// maxMarks is the most accents on one character. More paint over the lines around.
const maxMarks = 6

// visible drops the characters that are not seen but change how others look:
// those that reorder text, with which "exe.pdf" can be made to look like
// "fdp.exe", and those that part a word only for programs.
func visible(s string) string {
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

// hidden reports whether a character behind another one is not to be seen.
// Joiners and variants belong to emoji and to scripts other than ours.
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

// isolated keeps a text with letters that go from right to left from
// reordering what stands around it.
func isolated(s string) string {
	const first, pop = "\u2068", "\u2069" // first strong isolate, pop directional isolate
	for _, r := range s {
		p, _ := bidi.LookupString(string(r))
		if c := p.Class(); c == bidi.R || c == bidi.AL {
			return first + s + pop
		}
	}
	return s
}

func truncate(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText])
}

// shorten takes the middle out of a name that has more than longest
// characters; its end, with the extension, stays. No accent or joiner is
// parted from its character.
func shorten(name string, longest int) string {
	runes := []rune(name)
	if len(runes) <= longest {
		return name
	}
	const gap = "..." // the ellipsis is not in the GSM alphabet
	tail := min(longest/3, 10)
	head := max(longest-tail-len(gap), 0)
	return strings.TrimRightFunc(string(runes[:head]), joins) + gap + strings.TrimLeftFunc(string(runes[len(runes)-tail:]), joins)
}

func joins(r rune) bool { return unicode.In(r, unicode.M, unicode.Join_Control, unicode.Sk) }
