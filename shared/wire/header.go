package wire

import (
	"errors"
	"io"
	"maps"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Parameters parses a header with parameters, such as Content-Type or Content-Disposition (RFC
// 9110, section 5.6.6, and RFC 8187), as clients write it: a value without quotes may have any
// character except quotes and semicolons, and a file name may consist of encoded words (RFC 2047).
// The returned value and names are in lower case. all is false if a parameter cannot be read. That
// parameter is left out, but must not count as absent where it matters.
func Parameters(header string) (value string, params map[string]string, all bool) {
	value, rest, _ := strings.Cut(header, ";")
	params, all = map[string]string{}, true
	extended := map[string]string{} // they win
	for rest = trimLeft(rest); rest != ""; rest = trimLeft(rest) {
		end := endOfParameter(rest)
		name, text, ok := strings.Cut(rest[:end], "=")
		rest = rest[end:]
		name, isExtended := strings.CutSuffix(strings.ToLower(strings.TrimSpace(name)), "*")
		text, closed := unquote(strings.TrimSpace(text))
		ok = ok && closed && !strings.Contains(name, "*") // HTTP has no continuations (RFC 8187)
		to := params
		if isExtended {
			to = extended
			text, ok = decodeExtended(text, ok)
		} else if name == "filename" {
			text, ok = decodeWords(text, ok)
		}
		if other, twice := to[name]; !ok || twice && other != text {
			all = false
			continue
		}
		to[name] = text
	}
	maps.Copy(params, extended)
	return strings.ToLower(strings.TrimSpace(value)), params, all
}

func trimLeft(rest string) string { return strings.TrimLeft(rest, "; \t") }

// endOfParameter returns where the next semicolon outside quotes is.
func endOfParameter(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ';' && !quoted:
			return i
		case text[i] == '\\' && quoted:
			i++
		}
	}
	return len(text)
}

// unquote returns the value of a parameter without its quotes, if it has any. Package mime keeps
// the backslashes of a path, which old browsers send unescaped.
func unquote(text string) (value string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return text, !strings.Contains(text, `"`)
	}
	_, params, err := mime.ParseMediaType("x; value=" + text)
	return params["value"], err == nil
}

// decodeExtended decodes a value such as UTF-8”%C3%A9 (RFC 8187).
func decodeExtended(text string, ok bool) (string, bool) {
	parts := strings.SplitN(text, "'", 3)
	if !ok || len(parts) != 3 {
		return "", false
	}
	raw, err := url.PathUnescape(parts[2])
	if err != nil {
		return "", false
	}
	text, err = decode(strings.ToLower(parts[0]), raw)
	return text, err == nil
}

// decodeWords decodes a value that consists of encoded words, as .NET writes names. Other values
// stay as they are.
func decodeWords(text string, ok bool) (string, bool) {
	for word := range strings.FieldsSeq(text) {
		if !strings.HasPrefix(word, "=?") || !strings.HasSuffix(word, "?=") {
			return text, ok
		}
	}
	d := mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader, error) {
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		text, err := decode(charset, string(raw))
		return strings.NewReader(text), err
	}}
	text, err := d.DecodeHeader(text)
	return text, ok && err == nil && !strings.ContainsRune(text, utf8.RuneError) // the decoder repairs silently
}

// decode returns a text that was in one of the charsets in which names are written. It does not
// check UTF-8.
func decode(charset, text string) (string, error) {
	switch charset {
	case "utf-8", "utf8", "us-ascii":
		return text, nil
	case "iso-8859-1", "latin1", "windows-1252": // the same, as in the WHATWG's Encoding standard
		return windows1252(text), nil
	}
	return "", errors.New("the charset is not supported")
}

// UTF8 returns a text as UTF-8. It may be UTF-8 already, or Windows-1252, in which old programs
// write names.
func UTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return windows1252(text)
}

func windows1252(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		r := charmap.Windows1252.DecodeByte(c)
		if r == utf8.RuneError { // five bytes are none of its characters
			r = rune(c)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// maxType is the longest media type in bytes, and maxCharset the longest charset (RFC 2978: 40).
const maxType, maxCharset = 127, 40

// MediaType returns what can be read of a media type, such as text/plain; charset=utf-8: type, subtype
// and charset. It is empty if type and subtype cannot be read.
func MediaType(header string) string {
	kind, params, _ := Parameters(header)
	if len(kind) > maxType || !strings.Contains(kind, "/") {
		return ""
	}
	kept := map[string]string{}
	if charset := params["charset"]; charset != "" && len(charset) <= maxCharset {
		kept["charset"] = charset
	}
	return mime.FormatMediaType(kind, kept)
}
