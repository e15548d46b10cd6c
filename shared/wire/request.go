package wire

import "time"

// NewRequest begins a request for files, or changes one. A nil field is left unchanged, or unset in
// a new request.
type NewRequest struct {
	Title    *string `json:"title,omitempty"`
	Message  *string `json:"message,omitempty"`
	Expires  *string `json:"expires,omitempty"` // like 12h or 7d, or an RFC 3339 date; empty means never
	Bytes    *int64  `json:"bytes,omitempty"`   // the most, together; 0 is no limit
	Files    *int64  `json:"files,omitempty"`   // the most; 0 is 10,000
	Notify   *bool   `json:"notify,omitempty"`  // mail the maker when files arrive
	Password *string `json:"password,omitempty"`
}

// Request is a request as its maker sees it.
type Request struct {
	ID        string    `json:"id"`
	LinkURL   string    `json:"linkURL"`
	Title     string    `json:"title,omitempty"`
	Message   string    `json:"message,omitempty"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	Bytes     int64     `json:"bytes,omitempty"` // the most
	Files     int64     `json:"files,omitempty"` // the most
	Notify    bool      `json:"notify,omitempty"`
	Protected bool      `json:"protected,omitempty"` // by a password
	Arrived   Arrivals  `json:"arrived"`
}

// Arrivals counts what has arrived through a request.
type Arrivals struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// RequestAbout is what a guest sees of a request.
type RequestAbout struct {
	Maker     string     `json:"maker"`
	Title     string     `json:"title,omitempty"`
	Message   string     `json:"message,omitempty"`
	Expires   time.Time  `json:"expires,omitzero"`
	BytesLeft *int64     `json:"bytesLeft,omitempty"` // missing if there is no limit
	FilesLeft *int64     `json:"filesLeft,omitempty"`
	Protected bool       `json:"protected"`
	Sent      []SentFile `json:"sent,omitempty"` // by this guest, newest first
}

// SentFile is a file as the guest who sent it sees it.
type SentFile struct {
	Name   string `json:"name"`
	Length int64  `json:"length"`
}
