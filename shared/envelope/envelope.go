// Package envelope sends all of Ferry's responses: it writes the standard envelope of the
// interface specification (section 2.2), maps faults to status codes, recovers panics, and
// logs requests without anything secret. Start reading with Outlet in handler.go.
package envelope

import (
	"bytes"
	"cmp"
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
}

// Body is an envelope.
type Body struct {
	Status      int    `json:"status"` // 0 for a success
	Description string `json:"description"`
	APIVersion  string `json:"apiver"` // Write sets it
	User        string `json:"user,omitempty"`
	Bearer      string `json:"bearer,omitempty"`
	LinkURL     string `json:"linkURL,omitempty"`
	Files       []File `json:"files,omitzero"` // left out if nil, but not if empty
	Time        string `json:"time"`           // Write sets it
}

// Write sends an envelope, a success with status 200.
func Write(w http.ResponseWriter, now time.Time, b Body) error {
	b.APIVersion = APIVersion
	b.Time = now.String()
	return WriteJSON(w, max(b.Status, http.StatusOK), b)
}

// WriteError sends the envelope of an error with this status.
func WriteError(w http.ResponseWriter, now time.Time, status int) error {
	return Write(w, now, Body{Status: status, Description: http.StatusText(status)})
}

// WriteJSON sends v with a status, as JSON with a line end.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // the & of links stays
	if err := enc.Encode(v); err != nil {
		return err
	}
	return WriteText(w, status, text.Bytes())
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

// WriteText sends a whole body. It is JSON unless the headers name another type.
func WriteText(w http.ResponseWriter, status int, text []byte) error {
	h := w.Header()
	h.Set("Content-Type", cmp.Or(h.Get("Content-Type"), "application/json; charset=utf-8"))
	h.Set("Cache-Control", cmp.Or(h.Get("Cache-Control"), "no-store"))
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}
