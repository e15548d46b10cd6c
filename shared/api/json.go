package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/lazy"
)

// maxJSON is the most bytes in the JSON of a request.
const maxJSON = 64 << 10

// WithJSON returns a handler that hands the JSON of a request's body to f.
func WithJSON[T any](
	mayBeEmpty bool,
	f func(http.ResponseWriter, *http.Request, identity.Identity, T) error,
) Handler {
	return func(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
		var in T
		if err := JSON(r, &in, mayBeEmpty); err != nil {
			return err
		}
		return f(w, r, u, in)
	}
}

// JSON reads the JSON of a request's body. An unknown field is an error, because it may be
// misspelt. So are bytes that are not UTF-8 and half of a surrogate pair, which encoding/json would
// silently replace.
func JSON(r *http.Request, into any, mayBeEmpty bool) error {
	if err := envelope.LimitBody(r, maxJSON); err != nil {
		return err
	}
	body, err := io.ReadAll(r.Body)
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // Windows programs write it
	if err != nil || mayBeEmpty && len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if !utf8.Valid(body) || hasHalf(body) {
		return fault.New(
			fault.Invalid, "the JSON in the body is not valid UTF-8: the client must send it as UTF-8",
		)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil {
		for name, value := range fields {
			if string(value) == "null" {
				return fault.New(fault.Invalid, "%q cannot be null", name)
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &fault.Fault{
			Kind:   fault.Invalid,
			Detail: "the body is not the expected JSON: " + plain(err),
			Cause:  err,
		}
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.New(fault.Invalid, "the body has more than one JSON value")
	}
	if fields == nil { // null, which would count as no fields at all
		return fault.New(fault.Invalid, "the body must be a JSON object")
	}
	return nil
}

// hasHalf reports whether JSON has an escape such as \ud83d that is half of a character.
func hasHalf(body []byte) bool {
	return slices.ContainsFunc(escapes().FindAllSubmatch(body, -1), func(found [][]byte) bool {
		return found[1] != nil
	})
}

// plain says what is wrong with JSON, without naming Go types.
func plain(err error) string {
	wrong, _ := errors.AsType[*json.UnmarshalTypeError](err)
	syntax, _ := errors.AsType[*json.SyntaxError](err)
	switch {
	case wrong != nil:
		// The types of embedded fields are part of the path.
		return fmt.Sprintf("%q cannot be a %s",
			wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:], wrong.Value)
	case syntax != nil:
		return fmt.Sprintf("syntax error at byte %d", syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it is empty or cut off"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// escapes matches whole pairs of surrogates, halves, and all other escapes.
var escapes = lazy.Regexp(`(?i)\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)`)
