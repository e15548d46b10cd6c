package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// File is a file in one of the user's areas.
type File struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Length   int64  `json:"length"`   // bytes
	Modified int64  `json:"modified"` // Unix milliseconds
	Link     string `json:"linkURL"`  // downloads the file without login
}

// Details are all that the service knows of a file.
type Details struct {
	File
	Type      string `json:"type"`
	Expires   string `json:"expires"`   // RFC 3339; empty is never
	Area      string `json:"area"`      // files or backup
	CRC64NVME string `json:"crc64nvme"` // base64 of 8 bytes, big endian
	SHA256    string `json:"sha256"`    // in hexadecimal; empty if not known
	Uploader  string `json:"uploader"`

	Downloads     Downloads      `json:"downloads"`     // by Link
	Notify        bool           `json:"notify"`        // the caller will hear, or has heard, of the first download
	Notifications []Notification `json:"notifications"` // of the caller's recipients
}

// Downloads are those by one link. Times are zero if there were none.
type Downloads struct {
	Count       int64     `json:"count"` // whole ones, by people
	First       time.Time `json:"first,omitzero"`
	Last        time.Time `json:"last,omitzero"`
	Previews    int64     `json:"previews"` // fetched by programs of themselves
	LastPreview time.Time `json:"lastPreview,omitzero"`
}

// Notification is what became of the message to one recipient, and of the link
// in it.
type Notification struct {
	ID        string    `json:"id"`
	Channel   string    `json:"channel,omitempty"` // mail or sms
	To        string    `json:"to"`
	State     string    `json:"state,omitempty"` // queued, sending, sent or failed; empty if not known any more
	Created   time.Time `json:"created,omitzero"`
	Tries     int       `json:"tries"`
	LastError string    `json:"lastError,omitempty"`
	Provider  string    `json:"provider,omitempty"` // the provider's name of the message
	Sent      time.Time `json:"sent,omitzero"`
	Delivered time.Time `json:"delivered,omitzero"`
	Failed    time.Time `json:"failed,omitzero"`
	Downloads Downloads `json:"downloads"` // by the recipient's link
}

// Area is one of a user's two areas.
type Area string

// The areas. Deleted files are in the backup area for a while.
const (
	UserArea   Area = "files"
	BackupArea Area = "backup"
)

const pageSize = 1000

// Files yields the files of an area, newest first, page after page as they are
// needed. It ends after an error.
func (c *Client) Files(ctx context.Context, a Area) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		path := "/download/list"
		if a == BackupArea {
			path += "/backup"
		}
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		for query != nil {
			var e envelope
			header, err := c.callHeader(ctx, request{method: "GET", path: path, query: query, login: true}, &e)
			if err != nil {
				yield(File{}, err)
				return
			}
			for _, f := range e.Files {
				if !yield(f, nil) {
					return
				}
			}
			query = next(header)
		}
	}
}

// next is the query of the page after an answer, or nil (RFC 8288).
func next(h http.Header) url.Values {
	for _, link := range h.Values("Link") {
		target, params, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if u, err := url.Parse(target); ok && err == nil && strings.Contains(params, `rel="next"`) {
			return u.Query()
		}
	}
	return nil
}

// File tells all about a file. An unknown id is an ErrNotFound.
func (c *Client) File(ctx context.Context, a Area, id int64) (Details, error) {
	var d Details
	r := request{method: "GET", path: fmt.Sprintf("/files/%d", id), login: true}
	if a == BackupArea {
		r.query = url.Values{"area": {string(a)}}
	}
	err := c.call(ctx, r, &d)
	return d, err
}

// Sent tells all about a file that the caller has sent to another user. An
// unknown id is an ErrNotFound.
func (c *Client) Sent(ctx context.Context, to string, id int64) (Details, error) {
	var d Details
	r := request{method: "GET", path: fmt.Sprintf("/files/%d", id), query: url.Values{"d": {to}}, login: true}
	err := c.call(ctx, r, &d)
	return d, err
}

// Named returns the files of an area that have a name, newest first, and no
// more than limit. None is an ErrNotFound.
func (c *Client) Named(ctx context.Context, a Area, name string, limit int) ([]File, error) {
	var found []File
	for f, err := range c.Files(ctx, a) {
		if err != nil {
			return nil, err
		}
		if f.Name == name {
			if found = append(found, f); len(found) == limit {
				break
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return found, nil
}

// Delete moves a file to the backup area, and returns it as it is there.
func (c *Client) Delete(ctx context.Context, id int64) (File, error) {
	return c.move(ctx, "DELETE", fmt.Sprintf("/files/%d", id))
}

// Restore moves a file from the backup area back, and returns it.
func (c *Client) Restore(ctx context.Context, id int64) (File, error) {
	return c.move(ctx, "POST", fmt.Sprintf("/files/%d/restore", id))
}

func (c *Client) move(ctx context.Context, method, path string) (File, error) {
	var e envelope
	if err := c.call(ctx, request{method: method, path: path, login: true}, &e); err != nil {
		return File{}, err
	}
	if len(e.Files) != 1 {
		return File{}, ErrAnswer
	}
	return e.Files[0], nil
}

// callHeader is call that also returns the answer's header.
func (c *Client) callHeader(ctx context.Context, r request, into any) (h http.Header, err error) {
	err = c.retry.do(ctx, func() error {
		h, err = c.onceHeader(ctx, r, into)
		return err
	})
	return h, err
}
