package client

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Session is an upload in parts. All parts have PartSize bytes but the last.
type Session struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Length   int64     `json:"length"`
	PartSize int64     `json:"partSize"`
	Parts    int       `json:"parts"`
	Expires  time.Time `json:"expires"`
	Created  time.Time `json:"created,omitzero"`
	To       string    `json:"d,omitempty"`
}

// FileID is the id that the file has, or will have.
func (s Session) FileID() int64 {
	text, _, _ := strings.Cut(s.ID, "-")
	id, _ := strconv.ParseInt(text, 10, 64)
	return id
}

// size is the size of a part; parts count from 1.
func (s Session) size(number int) int64 {
	return min(s.PartSize, s.Length-int64(number-1)*s.PartSize)
}

// check keeps a wrong answer from leading anywhere.
func (s Session) check(length int64) error {
	if s.ID == "" || s.Length != length || s.Parts < 1 || s.PartSize < 1 && length > 0 ||
		s.size(s.Parts) < 0 || s.size(s.Parts) > s.PartSize || int64(s.Parts-1)*s.PartSize+s.size(s.Parts) != length {
		return fmt.Errorf("%w: the upload session's parts do not make up the file", ErrAnswer)
	}
	return nil
}

// Arrived is a part that the service has.
type Arrived struct {
	Number    int    `json:"number"`
	Size      int64  `json:"size"`
	CRC64NVME string `json:"crc64nvme"` // base64 of 8 bytes, big endian; empty if not known
}

// Status is a session and what of it has arrived.
type Status struct {
	Session
	State   string    `json:"state"` // open, or done
	Arrived []Arrived `json:"arrived"`
}

// BeginOptions describe the file of a new session.
type BeginOptions struct {
	Delivery
	Name     string
	Type     string // a media type, or empty
	Length   int64
	SHA256   string // in hexadecimal, if known
	PartSize int64  // a wish; 0 leaves it to the service

	// Key makes Begin return the same session when it is repeated within a day.
	Key string
}

// Begin opens a session. It lives for days, wherever it is gone on with.
func (c *Client) Begin(ctx context.Context, o BeginOptions) (Session, error) {
	body := struct {
		Name     string `json:"name"`
		Length   int64  `json:"length"`
		Type     string `json:"type,omitempty"`
		To       string `json:"d,omitempty"`
		SMS      string `json:"c,omitempty"`
		Mail     string `json:"m,omitempty"`
		Message  string `json:"i,omitempty"`
		Notify   bool   `json:"notify,omitempty"`
		Lang     string `json:"lang,omitempty"`
		SHA256   string `json:"sha256,omitempty"`
		PartSize int64  `json:"partSize,omitempty"`
	}{o.Name, o.Length, o.Type, o.To, o.SMS, o.Mail, o.Message, o.Notify, o.Lang, o.SHA256, o.PartSize}
	r := request{method: "POST", path: "/uploads", json: body, login: true}
	if o.Key != "" {
		r.header = http.Header{"Idempotency-Key": {o.Key}}
	}
	send := c.call
	if o.Key == "" {
		send = c.once // a repetition would open another
	}
	var s Session
	if err := send(ctx, r, &s); err != nil {
		return Session{}, err
	}
	return s, s.check(o.Length)
}

// Status tells which parts of a session have arrived: all that is needed to go
// on with it, on another machine too.
func (c *Client) Status(ctx context.Context, id string) (Status, error) {
	var s Status
	err := c.call(ctx, request{method: "GET", path: "/uploads/" + url.PathEscape(id), login: true}, &s)
	return s, err
}

// SignedPart is a request that sends one part. It needs no login.
type SignedPart struct {
	Number  int               `json:"number"`
	Size    int64             `json:"size"`
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Expires time.Time         `json:"expires"`
}

// Sign returns the requests that send the parts of these CRC64NVME sums, by
// number; at most 100.
func (c *Client) Sign(ctx context.Context, id string, sums map[int]uint64) (parts []SignedPart, err error) {
	err = c.retry.do(ctx, func() error {
		parts, err = c.sign(ctx, id, sums)
		return err
	})
	return parts, err
}

// sign is Sign, tried once.
func (c *Client) sign(ctx context.Context, id string, sums map[int]uint64) ([]SignedPart, error) {
	body := struct {
		Numbers []int             `json:"numbers"`
		CRC     map[string]string `json:"crc64nvme"`
	}{CRC: map[string]string{}}
	for number, sum := range sums {
		body.Numbers = append(body.Numbers, number)
		body.CRC[strconv.Itoa(number)] = FormatCRC(sum)
	}
	var answer struct {
		Parts []SignedPart `json:"parts"`
	}
	r := request{method: "POST", path: "/uploads/" + url.PathEscape(id) + "/parts", json: body, login: true}
	if err := c.once(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Parts) != len(sums) {
		return nil, fmt.Errorf("%w: it has other parts than asked for", ErrAnswer)
	}
	return answer.Parts, nil
}

// Complete makes the file of a session whose parts have all arrived. sum is the
// CRC64NVME of the whole, which the service compares if it is not nil. A
// repetition gives the same answer.
func (c *Client) Complete(ctx context.Context, s Session, sum *uint64) (File, error) {
	body := map[string]string{}
	if sum != nil {
		body["crc64nvme"] = FormatCRC(*sum)
	}
	var e envelope
	r := request{method: "POST", path: "/uploads/" + url.PathEscape(s.ID) + "/complete", json: body, login: true}
	if err := c.callOn(ctx, r, &e); err != nil {
		return File{}, err
	}
	for _, f := range e.Files {
		if f.ID == s.FileID() {
			return f, nil
		}
	}
	d, err := c.File(ctx, UserArea, s.FileID()) // a repetition after a hundred others
	return d.File, err
}

// callOn is call for a request of which each try may come further and still be
// answered with 503, as when a large file's SHA-256 is compared: as long as what
// the service says changes, the tries are not used up.
func (c *Client) callOn(ctx context.Context, r request, into any) error {
	said := ""
	return c.retry.do(ctx, func() error {
		err := c.once(ctx, r, into)
		if StatusOf(err) == http.StatusServiceUnavailable && err.Error() != said {
			said = err.Error()
			return progress{err}
		}
		return err
	})
}

// Abort ends a session and removes its parts.
func (c *Client) Abort(ctx context.Context, id string) error {
	return c.call(ctx, request{method: "DELETE", path: "/uploads/" + url.PathEscape(id), login: true}, nil)
}

// Sessions yields the caller's open sessions, newest first.
func (c *Client) Sessions(ctx context.Context) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for query := (url.Values{"limit": {strconv.Itoa(pageSize)}}); query != nil; {
			var answer struct {
				Uploads []Session `json:"uploads"`
			}
			header, err := c.callHeader(ctx, request{method: "GET", path: "/uploads", query: query, login: true}, &answer)
			if err != nil {
				yield(Session{}, err)
				return
			}
			for _, s := range answer.Uploads {
				if !yield(s, nil) {
					return
				}
			}
			query = next(header)
		}
	}
}

// FormatCRC writes a CRC64NVME as the interface does.
func FormatCRC(sum uint64) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, sum))
}

// ParseCRC reads what FormatCRC writes.
func ParseCRC(text string) (sum uint64, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}
