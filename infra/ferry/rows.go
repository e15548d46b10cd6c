package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// rows prints a table, or a JSON array, row by row.
type rows struct {
	out     io.Writer
	json    bool
	printed int
	header  string
}

func newRows(out io.Writer, asJSON bool) *rows { return &rows{out: out, json: asJSON} }

func (r *rows) head(format string, titles ...any) { r.header = fmt.Sprintf(format, titles...) }

func (r *rows) row(v any, line string) error {
	if !r.json {
		if r.printed == 0 {
			line = r.header + line
		}
		r.printed++
		_, err := io.WriteString(r.out, line)
		return err
	}
	var text bytes.Buffer
	text.WriteString(",\n  ")
	if r.printed == 0 {
		text.Reset()
		text.WriteString("[\n  ")
	}
	r.printed++
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := r.out.Write(bytes.TrimRight(text.Bytes(), "\n"))
	return err
}

// end ends the array, or says that there was nothing.
func (r *rows) end(nothing string) error {
	var err error
	switch {
	case r.json && r.printed == 0:
		_, err = io.WriteString(r.out, "[]\n")
	case r.json:
		_, err = io.WriteString(r.out, "\n]\n")
	case r.printed == 0:
		_, err = fmt.Fprintln(r.out, nothing)
	}
	return err
}

// failures are those of a command on several things, of which some may succeed.
type failures struct {
	out   console
	meter *meter // which is drawn meanwhile; may be nil
	first error
}

// add prints the error and keeps the first; nil is none.
func (f *failures) add(name string, err error) {
	if err == nil {
		return
	}
	err = &failure{name, err}
	if f.first == nil {
		f.first = err
		return
	}
	if f.meter != nil {
		f.meter.mu.Lock()
		defer f.meter.mu.Unlock()
		f.meter.clear()
	}
	fmt.Fprintln(f.out.Err, "ferry:", err)
}

// err is the first error, which its caller prints.
func (f *failures) err() error { return f.first }

// failure is the error of one of several things.
type failure struct {
	name string
	err  error
}

// Error names the thing, once.
func (f *failure) Error() string {
	text, name := explain(f.err), cmp.Or(printable(f.name), `""`)
	if strings.HasPrefix(text, name+": ") || strings.HasSuffix(text, ": "+name) {
		return text
	}
	return name + ": " + text
}

func (f *failure) Unwrap() error { return f.err }
