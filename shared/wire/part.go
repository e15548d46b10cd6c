package wire

import (
	"time"
)

// NewSession begins an upload in parts. Without a length the file is streamed.
type NewSession struct {
	Name   string `json:"name"`
	Length *int64 `json:"length,omitempty"`
	Type   string `json:"type"`
	Delivery
	SHA256   string `json:"sha256"`
	PartSize int64  `json:"partSize"`

	Bundle bool   `json:"bundle,omitempty"` // see package bundle
	Files  int64  `json:"files,omitempty"`  // how many files the bundle has
	By     string `json:"by,omitempty"`     // the name that a guest gives
}

// Session is an upload in parts, as its uploader or the owner of the area sees it.
type Session struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Length   *int64    `json:"length,omitempty"` // bytes, once it is known
	Type     string    `json:"type,omitempty"`
	D        string    `json:"d,omitempty"`       // the owner, if not the caller
	From     string    `json:"from,omitempty"`    // the uploader, if not the caller
	Request  string    `json:"request,omitempty"` // the request through whose link a guest sends it
	By       string    `json:"by,omitempty"`      // the name that the guest gave
	PartSize int64     `json:"partSize"`
	Parts    int       `json:"parts,omitempty"`
	State    string    `json:"state"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	Arrived  []Arrived `json:"arrived,omitzero"`
}

// SignParts asks where to send parts, with their checksums as CRC64Text writes them.
type SignParts struct {
	Numbers   []int             `json:"numbers"`
	CRC64NVME map[string]string `json:"crc64nvme"`
	Length    *int64            `json:"length,omitempty"` // of a stream, for its last part
}

// SignedParts is the answer to SignParts.
type SignedParts struct {
	Parts []SignedPart `json:"parts"`
}

// Complete makes a file of the parts that have arrived.
type Complete struct {
	CRC64NVME string `json:"crc64nvme"`        // of the whole, if known
	Length    *int64 `json:"length,omitempty"` // of a stream
}

// SignedPart is a request that sends one part of an upload. It needs no login.
type SignedPart struct {
	Number  int               `json:"number"`
	Size    int64             `json:"size"`
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Expires string            `json:"expires"` // RFC 3339, UTC
}

// Arrived is a part that the service has.
type Arrived struct {
	Number    int    `json:"number"`
	Size      int64  `json:"size"`
	CRC64NVME string `json:"crc64nvme,omitempty"` // base64 of 8 bytes, big endian; empty if not known
}

// FilesHeader is a header of each answer to a user that has stored files. It has their ids in the
// order of the parts, such as 12, 13.
const FilesHeader = "Ferry-Files"
