package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
)

func printJSON(out console, v any) error {
	enc := json.NewEncoder(out.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// listing is how things are listed: in lines, or as a JSON array.
type listing[T any] struct {
	json    bool
	format  string // of a line, also of the one with the titles
	titles  []any
	columns func(T) []any
	nothing string // printed if there is nothing
}

// print prints one thing after the other.
func (l listing[T]) print(out console, all iter.Seq2[T, error]) error {
	first, between, last, none := fmt.Sprintf(l.format, l.titles...), "", "", l.nothing
	if l.json {
		first, between, last, none = "[\n  ", ",\n  ", "\n]\n", "[]\n"
	}
	before, after := first, none
	for v, err := range all {
		if err != nil {
			return err
		}
		text := fmt.Sprintf(l.format, l.columns(v)...)
		if l.json {
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(v); err != nil {
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

// failures are those of a command on several things, of which some may succeed.
type failures struct {
	out   console
	meter *meter // drawn at the same time; may be nil
	first error  // which the caller prints
}

// add keeps the first error, and prints the others.
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

// each runs f on each of several things until ctx ends. It goes on after errors,
// prints them, and returns the first.
func each(ctx context.Context, out console, names []string, f func(name string) error) error {
	failed := failures{out: out}
	for _, name := range names {
		if ctx.Err() != nil {
			return cmp.Or(failed.first, ctx.Err())
		}
		failed.add(name, f(name))
	}
	return failed.first
}

// report prints the results of several things in JSON, if wanted, and returns
// the first failure.
func report(out console, asJSON bool, results any, failed error) error {
	if asJSON {
		if err := printJSON(out, results); err != nil {
			return err
		}
	}
	return failed
}

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
