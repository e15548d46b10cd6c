package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"

	"ferry/shared/wire"
)

// SmallFile is the size in bytes up to which a file is best sent by Upload: what
// passes API Gateway and Lambda in one body.
const SmallFile = 4 << 20

// Delivery says where a file goes and who is told.
type Delivery struct {
	To      string // a user, into whose area the file goes; empty is the caller
	SMS     string // a mobile number that gets the link
	Mail    string // an address that gets the link
	Message string // sent with the link
	Lang    string // of the link and the messages
	// Notify has a mail sent to the caller when a person has downloaded the
	// file for the first time.
	Notify bool `json:",omitempty"`
}

func (d Delivery) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"d": d.To, "c": d.SMS, "m": d.Mail, "i": d.Message, "lang": d.Lang} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if d.Notify {
		q.Set("notify", "1")
	}
	return q
}

// Upload sends a small file by one request, with its SHA-256. A repetition after
// a lost answer stores nothing twice. kind is a media type, or empty.
func (c *Client) Upload(ctx context.Context, name, kind string, content []byte, d Delivery) (File, error) {
	clean := wire.CleanFileName(name)
	if clean == "" {
		return File{}, fmt.Errorf("%q is not the name of a file", name)
	}
	sum := sha256.Sum256(content)
	header := http.Header{
		"Content-Type":    {kindOf(kind)},
		"Repr-Digest":     {"sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"},
		"Idempotency-Key": {rand.Text()},
	}
	query := d.query()
	query.Set("file", clean)
	var e envelope
	if err := c.call(ctx, request{method: "POST", path: "/upload", query: query, header: header, body: content, login: true}, &e); err != nil {
		return File{}, err
	}
	for _, f := range e.Files { // the newest first
		if f.Name == clean && f.Length == int64(len(content)) {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("%w: it does not name the file", ErrAnswer)
}

func kindOf(kind string) string {
	if kind == "" {
		return "application/octet-stream"
	}
	return kind
}
