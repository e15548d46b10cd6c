// Package param reads what a request asks for: its query, the options of links and uploads, the
// language and the form of the answer. Start reading with query.go.
package param

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/lazy"
	"ferry/shared/wire"
)

// maxForm is the longest form body, far longer than its fields may be.
const maxForm = 16 << 10

// Form reads a body of type application/x-www-form-urlencoded and at most 16 KiB. Any other type of
// body is a fault if a form is required; otherwise there is no form.
func Form(r *http.Request, required bool) (url.Values, error) {
	kind, _, _ := wire.Parameters(r.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		if required {
			return nil, fault.New(
				fault.Invalid, "the body must be application/x-www-form-urlencoded",
			)
		}
		return nil, nil
	}
	if err := envelope.LimitBody(r, maxForm); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, err
	}
	if err == nil {
		r.PostForm, err = url.ParseQuery(string(body))
	}
	text := strings.Join(slices.Concat(slices.Collect(maps.Values(r.PostForm))...), "\n")
	if err != nil || !utf8.ValidString(text) {
		// The error may quote a password, so it must not even be logged.
		return nil, fault.New(fault.Invalid, "the form in the body is malformed")
	}
	return r.PostForm, nil
}

// Query returns the query, which must be well formed.
func Query(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.New(
			fault.Invalid, "the query is malformed: check its percent signs and semicolons",
		)
	}
	return q, nil
}

// OnlyKnown returns an Invalid fault if the query has a parameter other than these and lang,
// because it may be misspelt.
func OnlyKnown(r *http.Request, names ...string) error {
	q, err := Query(r)
	if err != nil {
		return err
	}
	for name := range q {
		if name != "lang" && !slices.Contains(names, name) {
			return Unknown(name, "there is no query parameter %.40q here", name)
		}
	}
	return nil
}

// Unknown returns an Invalid fault about a parameter whose name the caller has made up. The fault
// names the parameter only if the name is safe in a header.
func Unknown(name, format string, args ...any) error {
	if headerSafe().MatchString(name) {
		return fault.Parameter(name, format, args...)
	}
	return fault.New(fault.Invalid, format, args...)
}

// Misspelt returns a fault if the query has a name of four letters or more that is within two letters
// of a known one, which has as many.
func Misspelt(q url.Values, known ...string) error {
	for name := range q {
		near := func(right string) bool {
			return len(right) >= 4 && Within(strings.ToLower(name), right, 2)
		}
		if slices.Contains(known, name) || utf8.RuneCountInString(name) < 4 || len(name) > 20 {
			continue
		}
		if i := slices.IndexFunc(known, near); i >= 0 {
			return Unknown(name, "there is no parameter %q; did you mean %s?", name, known[i])
		}
	}
	return nil
}

// Value returns the value of a field, or the zero value if the field is nil.
func Value[T any](field *T) (value T) {
	if field != nil {
		value = *field
	}
	return value
}

// Within reports whether at most n letters must be added, removed, changed or swapped with
// the next to turn a into b.
func Within(a, b string, n int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == b || n == 0 {
		return a == b
	}
	return a != "" && Within(a[1:], b, n-1) || b != "" && Within(a, b[1:], n-1) ||
		a != "" && b != "" && Within(a[1:], b[1:], n-1) ||
		len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && Within(a[2:], b[2:], n-1)
}

// Required returns a required parameter of the query. what describes it for the caller. Other
// programs add parameters to links, and these may be broken.
func Required(r *http.Request, name, what string) (string, error) {
	q, _ := url.ParseQuery(r.URL.RawQuery) // without the broken parameters
	if q.Get(name) == "" || ownIsBroken(r.URL.RawQuery) {
		if _, err := Query(r); err != nil {
			return "", err
		}
		hint := ""
		if name == "k" || name == "z" { // a shell has cut it at the first &
			hint = ": put the link in quotes"
		}
		return "", fault.Parameter(name, "the query parameter %s, %s, is missing%s", name,
			what, hint)
	}
	return q.Get(name), nil
}

// ownIsBroken reports whether a parameter that changes what a link gives cannot be read. Such a
// parameter must not count as absent.
func ownIsBroken(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		_, err := url.QueryUnescape(value)
		if err != nil &&
			slices.Contains([]string{
				"lang", "claim", "download", "preview", "about", "entries", "entry", "after",
			}, name) {
			return true
		}
	}
	return false
}

// Token returns a required token of the query, without any text behind it that mail programs and
// chats take for the end of the link.
func Token(r *http.Request, name, what string) (string, error) {
	text, err := Required(r, name, what)
	return TrimToken(text), err
}

// TrimToken returns the beginning of a text, up to the first character that a token, which is
// base64url, cannot have. If nothing would be left, it returns the whole text.
func TrimToken(text string) string {
	rest := strings.TrimLeft(
		text,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	)
	return cmp.Or(strings.TrimSuffix(text, rest), text)
}

// Number returns a whole number in the query, from lowest to highest, or fallback if
// there is none.
func Number(r *http.Request, name string, lowest, highest, fallback int64) (int64, error) {
	q, err := Query(r)
	if err != nil || !q.Has(name) {
		return fallback, err
	}
	text := q.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, fault.Parameter(
			name,
			"the query parameter %s must be a number from %d to %d",
			name,
			lowest,
			highest,
		)
	}
	return n, nil
}

// FileID returns the {id} of a path. A file has only one address: +1 and 01 do not mean
// file 1.
func FileID(r *http.Request) (int64, error) {
	text := r.PathValue("id")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return 0, fault.New(fault.Invalid, "a file's id must be a whole number from 1")
	}
	return n, nil
}

var headerSafe = lazy.Regexp(`^[A-Za-z0-9_]+$`)
