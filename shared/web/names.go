package web

import (
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/wire"
)

// Looks returns the icon of a file by its name and media type, which is its kind.
func (page) Looks(name, mediaType string) string { return wire.FileKind(name, mediaType) }

// What says what kind of file this is, such as "JPG picture", or "" if its name does not tell.
func (p page) What(name, mediaType string) string {
	ext := strings.ToUpper(strings.TrimPrefix(path.Ext(name), "."))
	isLetter := func(r rune) bool { return r < '0' || r > 'Z' || r > '9' && r < 'A' }
	if ext == "" || len(ext) > 5 || strings.ContainsFunc(ext, isLetter) {
		return ""
	}
	return p.T("kind."+wire.FileKind(name, mediaType), ext)
}

// name is a file name in two parts: if it is too long, the first is cut, because the end matters
// more. Any other text is cut at its end: see the template "cut".
type name struct{ Whole, Head, Tail string }

// Parts returns a file's name as the template "name" shows it. Its second part is the extension,
// with a little of what precedes it.
func (page) Parts(text string) name {
	const longest, before, longestExt = 16, 4, 8
	runes := []rune(text)
	tail := before
	if ext := utf8.RuneCountInString(path.Ext(text)); ext <= longestExt {
		tail += ext
	}
	at := len(runes) - tail
	for at > 0 && at < len(runes) && joins(runes[at], runes[at-1]) {
		at--
	}
	isRTL := func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana)
	}
	if len(runes) <= longest || at <= 0 || slices.ContainsFunc(runes, isRTL) {
		return name{text, text, ""}
	}
	return name{text, string(runes[:at]), string(runes[at:])}
}

// plain returns a name without characters that change the direction of text: with them, an EXE
// could look like a JPG.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name)
}

// joins reports whether two characters are shown as one.
func joins(r, before rune) bool {
	const joiner = '\u200d'
	return unicode.In(r, unicode.M, unicode.Sk) || r == joiner || before == joiner
}

// Of returns a text about somebody, whose name is isolated from the direction of the text. Further
// arguments follow the name.
func (p page) Of(key, who string, args ...any) template.HTML {
	safe := []any{template.HTML("<bdi>" + template.HTMLEscapeString(who) + "</bdi>")}
	for _, a := range args {
		safe = append(safe, template.HTMLEscapeString(fmt.Sprint(a)))
	}
	return template.HTML(fmt.Sprintf(template.HTMLEscapeString(p.T(key)), safe...))
}
