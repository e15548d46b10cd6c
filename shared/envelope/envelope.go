// Package envelope sends all of Ferry's responses: it writes the standard envelope of the
// interface specification (section 2.2), maps faults to status codes, recovers panics, and
// logs requests without anything secret. Start reading with Outlet in handler.go.
package envelope

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// APIVersion is the apiver in every envelope.
const APIVersion = "v1 (3.6.0)"

// The specification's success texts, with its spelling.
const (
	Login  = "handlerAuthLogin:succsessfully"
	List   = "handlerDownloadList:succsessfully"
	Forget = "handlerAuthForget:succsessfully"
	First  = "handlerAuthFirst:succsessfully"
	Health = "handlerHealth:succsessfully"
	Stop   = "handlerNotificationsStop:succsessfully"
)

// File is a file record (specification section 2.3).
type File struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Length   int64  `json:"length"`   // bytes
	Modified int64  `json:"modified"` // Unix milliseconds
	LinkURL  string `json:"linkURL"`

	before, after []byte // the JSON around the beginning of the link
}

// Rendered returns the file with the fields before its link already encoded. This is for
// files that are listed often.
func (f File) Rendered() *File {
	text, _ := encode(File{ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified}) // it can always be encoded
	f.before = text[:len(text)-len("\"}\n")]
	f.after = append(appendEscaped(nil, f.LinkURL), `"}`...)
	return &f
}

// Success is an endpoint's part of an envelope; Write adds the rest.
type Success struct {
	Description string
	User        string
	Bearer      string
	LinkURL     string
	Files       []*File // the field is left out if nil, but not if empty
	Links       string  // the beginning of each file's LinkURL
}

// Write sends a success with status 200.
func Write(w http.ResponseWriter, now time.Time, s Success) error { return writeBody(w, now, 0, s) }

// WriteError sends the envelope of an error with this status.
func WriteError(w http.ResponseWriter, now time.Time, status int) error {
	return writeBody(w, now, status, Success{Description: http.StatusText(status)})
}

func writeBody(w http.ResponseWriter, now time.Time, status int, s Success) error {
	size := 512 + len(s.User) + len(s.Bearer) + len(s.LinkURL)
	for _, f := range s.Files {
		size += len(f.before) + len(s.Links) + len(f.after)
	}
	return WriteText(w, max(status, http.StatusOK), appendBody(make([]byte, 0, size), status, now.String(), s))
}

// WriteJSON sends v with a status.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	return WriteText(w, status, text)
}

// WriteNothing answers a request that has nothing to show with a 204, unless it failed.
func WriteNothing(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// encode is json.Marshal with a line end, and without escaping the & of links.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// WriteText sends a whole body. It is JSON unless the headers name another type.
func WriteText(w http.ResponseWriter, status int, text []byte) error {
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}

// appendBody encodes an envelope by hand. The answer to every upload lists a
// hundred files, and reflection made that the most expensive part of the answer.
func appendBody(b []byte, status int, now string, v Success) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(status), 10)
	b = appendText(append(b, `,"description":`...), v.Description)
	b = appendText(append(b, `,"apiver":`...), APIVersion)
	for _, f := range []struct{ name, value string }{
		{`,"user":`, v.User}, {`,"bearer":`, v.Bearer}, {`,"linkURL":`, v.LinkURL},
	} {
		if f.value != "" {
			b = appendText(append(b, f.name...), f.value)
		}
	}
	if v.Files != nil {
		b = append(b, `,"files":[`...)
		links := appendEscaped(nil, v.Links)
		for i, f := range v.Files {
			if i > 0 {
				b = append(b, ',')
			}
			if f.before == nil {
				f = f.Rendered()
			}
			b = append(append(append(b, f.before...), links...), f.after...)
		}
		b = append(b, ']')
	}
	b = appendText(append(b, `,"time":`...), now)
	return append(b, '}', '\n')
}

func appendText(b []byte, s string) []byte { return append(appendEscaped(append(b, '"'), s), '"') }

// appendEscaped encodes a string without its quotes. It copies strings that need no
// escapes, as most do.
func appendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			text, _ := encode(s) // a string can always be encoded
			return append(b, text[1:len(text)-len("\"\n")]...)
		}
	}
	return append(b, s...)
}
