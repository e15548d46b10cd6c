// Package filesget is GET /files/{id}: all that is known of a file of the
// caller, its checksums among it.
package filesget

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"ferry/shared/blob"
	"ferry/shared/endpoint"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "filesget",
		Routes: []endpoint.Route{{Method: "GET", Path: "/files/{id}"}, {Method: "HEAD", Path: "/files/{id}"}},
		New:    New,
	}
}

// record is a file as the answer shows it. The fields that a list has too are
// as there.
type record struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Length    int64     `json:"length"` // bytes
	Type      string    `json:"type,omitempty"`
	Modified  int64     `json:"modified"`          // Unix milliseconds
	Expires   string    `json:"expires,omitempty"` // RFC 3339, UTC; missing if never
	Area      blob.Area `json:"area"`
	CRC64NVME string    `json:"crc64nvme"`          // base64 of 8 bytes, big endian, as S3 has it
	SHA256    string    `json:"sha256,omitempty"`   // hexadecimal; missing if no upload stated it
	Uploader  string    `json:"uploader,omitempty"` // if not the caller
	LinkURL   string    `json:"linkURL"`
}

// New returns the handler. It needs the port Table and the link key.
//
// After authentication a request costs one call.
func New(p *endpoint.Ports) http.Handler {
	check, service := p.Auth(), p.Files()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := check.Request(r)
		if err != nil {
			return err
		}
		id, err := endpoint.FileID(r)
		if err != nil {
			return err
		}
		area, err := areaOf(r)
		if err != nil {
			return err
		}
		f, err := service.Get(r.Context(), u, area, id)
		if err != nil {
			return err
		}
		out, err := show(f)
		if err != nil {
			return err
		}
		out.LinkURL = f.Record(p.Base(r.Context()), endpoint.Lang(r, u), service.Token(f)).LinkURL
		return envelope.WriteJSON(w, http.StatusOK, out)
	})
}

// areaOf reads the query parameter area.
func areaOf(r *http.Request) (blob.Area, error) {
	q, err := endpoint.Query(r)
	if err != nil {
		return "", err
	}
	switch area := blob.Area(q.Get("area")); area {
	case "":
		return blob.Files, nil
	case blob.Files, blob.Backup:
		return area, nil
	}
	return "", fault.New(fault.Invalid, "the query parameter area is %s or %s", blob.Files, blob.Backup)
}

// show is all but the link.
func show(f files.File) (record, error) {
	crc, err := hex.DecodeString(f.CRC64)
	if err != nil {
		return record{}, fmt.Errorf("reading the checksum of file %d of %s: %w", f.ID, f.Owner, err)
	}
	out := record{
		ID: f.ID, Name: f.Name, Length: f.Length, Type: f.Type, Modified: f.Modified, Area: f.Area,
		CRC64NVME: base64.StdEncoding.EncodeToString(crc), SHA256: hex.EncodeToString(f.SHA256), Uploader: f.Uploader,
	}
	if f.Expires != 0 {
		out.Expires = time.Unix(f.Expires, 0).UTC().Format(time.RFC3339)
	}
	return out, nil
}
