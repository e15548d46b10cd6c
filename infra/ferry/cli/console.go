// Package cli has what all commands of ferry share: where they read and print, progress, errors with their exit
// codes, and lists. Start reading at Console.
package cli

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Console is where a command reads and prints.
type Console struct {
	Program string // as it was invoked
	In      io.Reader
	Out     Screen // for results
	Err     Screen // for everything else

	Typed map[string]string // what was typed after each flag, for errors about it
}

// Print prints a result. What is filled in is one line, whoever wrote it.
func (c Console) Print(format string, values ...any) error {
	_, err := fmt.Fprint(c.Out, filled(format, values))
	return err
}

// Tell prints anything that is not a result. What is filled in is one line, whoever wrote it.
func (c Console) Tell(format string, values ...any) {
	fmt.Fprint(c.Err, filled(format, values))
}

// filled fills in a format. Texts become printable.
func filled(format string, values []any) string {
	for i, value := range values {
		if text, ok := value.(string); ok {
			values[i] = Printable(text)
		}
	}
	return fmt.Sprintf(format, values...)
}

// Screen is where text is printed. No text can control a terminal, whoever wrote it: of the
// characters that could, only line ends and tabs get through. What goes to raw directly is not
// text: the bytes of files, and what Ferry draws. Each write contains whole characters.
type Screen struct{ Raw io.Writer }

// Write implements io.Writer.
func (s Screen) Write(text []byte) (int, error) {
	_, err := io.WriteString(s.Raw, clean(string(text), "\n\t"))
	return len(text), err
}

// controls reports whether a character could control a terminal, or reorder what it shows.
func controls(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Printable cleans a text of one line, so that it cannot begin another line either.
func Printable(text string) string { return clean(text, "") }

// clean replaces everything that could control a terminal, except the characters in kept.
func clean(text, kept string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) && !strings.ContainsRune(kept, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Loopback reports whether an address is on this machine.
func Loopback(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Quoted quotes a word for a shell, if it needs that.
func Quoted(word string) string {
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plain holds the characters that need no quotes in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-"
