package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"ferry/shared/wire"
)

// File is a file in one of the user's areas.
type File struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Length   int64  `json:"length"`   // bytes
	Modified int64  `json:"modified"` // Unix milliseconds
	Link     string `json:"linkURL"`  // downloads the file without login
}

// Details is everything that the service knows about a file.
type Details struct {
	File
	Type      string `json:"type"`
	Expires   string `json:"expires"`   // RFC 3339; empty means never
	Area      string `json:"area"`      // files or backup
	CRC64NVME string `json:"crc64nvme"` // base64 of 8 bytes, big endian
	SHA256    string `json:"sha256"`    // in hexadecimal; empty if not known
	Uploader  string `json:"uploader"`
	Request   string `json:"request"`           // the request through whose link a guest sent it
	By        string `json:"by"`                // the name that the guest gave
	Entries   int    `json:"entries,omitempty"` // of a bundle

	Downloads     Downloads      `json:"downloads"`     // by Link
	Links         []Link         `json:"links"`         // those that the caller may see; the file's own comes first
	Notify        bool           `json:"notify"`        // the caller gets, or has got, a mail at the first download
	Notifications []Notification `json:"notifications"` // of the caller's recipients
}

// Downloads counts the downloads by one link.
type Downloads = wire.Downloads

// Notification says what became of the message to one recipient, and of the link in it.
type Notification = wire.Notification

// Area is one of a user's two areas.
type Area string

// The areas. Deleted files are in the backup area for a while.
const (
	UserArea   Area = "files"
	BackupArea Area = "backup"
)

// Files yields the files of an area, newest first, and fetches each page when it is needed. It ends
// after an error.
func (c *Client) Files(ctx context.Context, a Area) iter.Seq2[File, error] {
	path := "/download/list"
	if a == BackupArea {
		path += "/backup"
	}
	return pages(
		ctx,
		c,
		path,
		func(e envelope) []File { return e.Files },
		func(f File) int64 { return f.ID },
	)
}

func filePath(id int64) string { return fmt.Sprintf("/files/%d", id) }

// File returns everything about a file. An unknown id is an ErrNotFound.
func (c *Client) File(ctx context.Context, a Area, id int64) (Details, error) {
	return get[Details](ctx, c, filePath(id), url.Values{"area": {string(a)}})
}

// Sent returns everything about a file that the caller has sent to another user.
// An unknown id is an ErrNotFound.
func (c *Client) Sent(ctx context.Context, to string, id int64) (Details, error) {
	return get[Details](ctx, c, filePath(id), url.Values{"d": {to}})
}

// Named returns the files of an area that have this name, newest first, at most
// limit of them. If there is none, the error is an ErrNotFound.
func (c *Client) Named(ctx context.Context, a Area, name string, limit int) ([]File, error) {
	var found []File
	for f, err := range c.Files(ctx, a) {
		if err != nil {
			return nil, err
		}
		if f.Name == name {
			found = append(found, f)
		}
		if len(found) == limit {
			break
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return found, nil
}

// Delete moves a file to the backup area, and returns the file there.
func (c *Client) Delete(ctx context.Context, id int64) (File, error) {
	return c.move(ctx, "DELETE", filePath(id))
}

// Restore moves a file back from the backup area, and returns it.
func (c *Client) Restore(ctx context.Context, id int64) (File, error) {
	return c.move(ctx, "POST", filePath(id)+"/restore")
}

// Purge removes a file of the backup area for good, and frees its room in the quota.
// Repeating it is no error. An unknown id is an ErrNotFound.
func (c *Client) Purge(ctx context.Context, id int64) error {
	return c.end(ctx, filePath(id), url.Values{"area": {string(BackupArea)}})
}

func (c *Client) move(ctx context.Context, method, path string) (File, error) {
	var e envelope
	if err := c.call(ctx, request{method: method, path: path}, &e); err != nil {
		return File{}, err
	}
	if len(e.Files) != 1 {
		return File{}, ErrAnswer
	}
	return e.Files[0], nil
}

// SmallFile is the size in bytes up to which Upload is the best way to send a file:
// API Gateway and Lambda accept that much in one body.
const SmallFile = 4 << 20

// Delivery says where a file goes, who is notified, and what limits its links.
type Delivery = wire.Delivery

// Limits limit links.
type Limits = wire.Limits

// passwordHeader has the password of a link: in a query it would end up in logs.
const passwordHeader = "Ferry-Link-Password"

// Upload sends a small file in one request, with its SHA-256. A retry after a lost
// answer stores nothing twice. kind is a media type, or empty.
func (c *Client) Upload(
	ctx context.Context,
	name, kind string,
	content []byte,
	d Delivery,
) (File, error) {
	clean := wire.CleanFileName(name)
	if clean == "" {
		return File{}, fmt.Errorf("%q is not a file name", name)
	}
	query := d.Query()
	query.Set("file", clean)
	sum := sha256.Sum256(content)
	r := request{
		method: "POST",
		path:   "/upload",
		query:  query,
		body:   content,
		header: http.Header{
			"Content-Type":    {cmp.Or(kind, "application/octet-stream")},
			"Repr-Digest":     {"sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"},
			"Idempotency-Key": {rand.Text()},
		},
	}
	if d.Password != "" {
		r.header.Set(passwordHeader, d.Password)
	}
	if c.guest != nil {
		r.method, r.path = "PUT", "/requests/in"
		query.Set("k", c.guest.token)
		if c.guest.name != "" {
			query.Set("by", c.guest.name)
		}
	}
	var e envelope
	var h http.Header
	r.answered = &h
	if err := c.call(ctx, r, &e); err != nil {
		return File{}, err
	}
	if c.guest != nil && len(e.Files) == 1 { // a guest's list has nothing else, and no id
		return e.Files[0], nil
	}
	// In a user's list another file may have the same name and length, so the id decides.
	for _, f := range e.Files {
		if f.ID > 0 && strconv.FormatInt(f.ID, 10) == h.Get(wire.FilesHeader) {
			return f, nil
		}
	}
	return File{}, ErrUnnamed
}
