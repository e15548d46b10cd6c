package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"ferry/shared/wire"
)

// Above is a column of two lines.
type Above struct{ First, Second string }

func (a Above) String() string {
	return Printable(a.First) + "\n" + strings.Repeat(" ", 10) + Printable(a.Second)
}

func When(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// Count formats a number of things for people, such as 1 file or 2 files.
func Count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Size formats a number of bytes for people.
func Size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := wire.Scale(n, 999.5)
	if value >= 99.95 {
		return fmt.Sprintf("%.0f %sB", value, prefix)
	}
	return fmt.Sprintf("%.1f %sB", value, prefix)
}

func PrintJSON(out Console, v any) error { return writeJSON(out.Out, v, "  ") }

// writeJSON writes v as JSON. Characters that a screen would replace are escaped, which keeps their meaning.
func writeJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range text.String() {
		if controls(r) && r != '\n' {
			fmt.Fprintf(&safe, `\u%04x`, r)
		} else {
			safe.WriteRune(r)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// Listing says how to list things: in lines, or as a JSON array.
type Listing[T any] struct {
	JSON    bool
	Format  string // of a line, and of the titles
	Titles  []any
	Columns func(T) []any // each text is one line, or an Above
	Nothing string        // printed if there is nothing
}

// Print prints the things one by one, as they arrive.
func (l Listing[T]) Print(out Console, all iter.Seq2[T, error]) error {
	before := fmt.Sprintf(l.Format, l.Titles...)
	after := l.Nothing
	between := ""
	last := ""
	if l.JSON {
		before = "[\n  "
		after = "[]\n"
		between = ",\n  "
		last = "\n]\n"
	}
	for v, err := range all {
		if err != nil {
			return err
		}
		text := filled(l.Format, l.Columns(v))
		if l.JSON {
			var b strings.Builder
			if err := writeJSON(&b, v, ""); err != nil {
				return err
			}
			text = strings.TrimRight(b.String(), "\n")
		}
		if _, err := io.WriteString(out.Out, before+text); err != nil {
			return err
		}
		before, after = between, last
	}
	_, err := io.WriteString(out.Out, after)
	return err
}

// Values yields the elements of a list.
func Values[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Whenever is like When, but for a time that may not be set.
func Whenever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return When(t)
}
