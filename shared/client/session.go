package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ferry/shared/wire"
)

// Session is an upload in parts. All parts but the last have PartSize bytes.
type Session struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Length   int64     `json:"length"`
	PartSize int64     `json:"partSize"`
	Parts    int       `json:"parts"`
	Expires  time.Time `json:"expires"`
	Created  time.Time `json:"created,omitzero"`
	To       string    `json:"d,omitempty"`    // the user whose area the file goes to, if not the caller
	From     string    `json:"from,omitempty"` // the user who began it, if not the caller
}

// FileID returns the id that the file has, or will have.
func (s Session) FileID() int64 {
	text, _, _ := strings.Cut(s.ID, "-")
	id, _ := strconv.ParseInt(text, 10, 64)
	return id
}

// size returns the size of a part; parts count from 1.
func (s Session) size(number int) int64 {
	return min(s.PartSize, s.Length-int64(number-1)*s.PartSize)
}

// check refuses a session whose parts do not make up a file of this length.
func (s Session) check(length int64) error {
	if s.ID == "" || s.Length != length || s.Parts < 1 || s.PartSize < 1 && length > 0 ||
		s.size(s.Parts) < 0 || int64(s.Parts-1)*s.PartSize+s.size(s.Parts) != length {
		return fmt.Errorf("%w: the upload session's parts do not add up to the file", ErrAnswer)
	}
	return nil
}

// Arrived is a part that the service has.
type Arrived = wire.Arrived

// Status is a session and what has arrived of it.
type Status struct {
	Session
	State   string    `json:"state"` // open, or done
	Arrived []Arrived `json:"arrived"`
}

func sessionPath(id string) string { return "/uploads/" + url.PathEscape(id) }

// Status returns which parts of a session have arrived: all that is needed to resume
// it, even on another machine.
func (c *Client) Status(ctx context.Context, id string) (Status, error) {
	return get[Status](ctx, c, sessionPath(id), nil)
}

// Abort ends a session and removes its parts.
func (c *Client) Abort(ctx context.Context, id string) error {
	return c.end(ctx, sessionPath(id), nil)
}

// Sessions yields the caller's open sessions, and those of others that send files to the caller's
// area, newest first.
func (c *Client) Sessions(ctx context.Context) iter.Seq2[Session, error] {
	return pages(ctx, c, "/uploads", func(e envelope) []Session { return e.Uploads },
		func(s Session) int64 { return s.Created.UnixMilli() })
}

// begin opens a session, which lasts for days. Within a day the same key returns the
// same session.
func (c *Client) begin(
	ctx context.Context,
	src Source,
	o PutOptions,
	key string,
) (s Session, err error) {
	body := wire.NewSession{
		Name:     wire.UTF8(src.Name),
		Type:     src.Type,
		Delivery: o.Delivery,
		SHA256:   src.SHA256,
		PartSize: o.PartSize,
		Bundle:   src.parts != nil,
		Files:    src.files,
	}
	if src.Length >= 0 {
		body.Length = &src.Length
	}
	if c.guest != nil {
		body.By = c.guest.name
	}
	r := request{
		method: "POST",
		path:   "/uploads",
		json:   body,
		header: http.Header{"Idempotency-Key": {key}},
	}
	if err = c.call(ctx, r, &s); err != nil {
		return Session{}, err
	}
	if src.Length < 0 && s.ID != "" && s.PartSize > 0 {
		return s, nil
	}
	return s, s.check(src.Length)
}

// sign returns the request that sends a part. It does not retry.
func (c *Client) sign(ctx context.Context, id string, p part) (wire.SignedPart, error) {
	sums := map[string]string{strconv.Itoa(p.number): wire.CRC64Text(p.sum)}
	body := wire.SignParts{Numbers: []int{p.number}, CRC64NVME: sums, Length: p.length}
	var answer wire.SignedParts
	err := c.once(ctx, request{
		method: "POST",
		path:   sessionPath(id) + "/parts",
		json:   body,
	}, &answer)
	if err != nil {
		return wire.SignedPart{}, err
	}
	if len(answer.Parts) != 1 {
		return wire.SignedPart{}, fmt.Errorf("%w: it does not have the requested part",
			ErrAnswer)
	}
	return answer.Parts[0], nil
}

// complete turns a session whose parts have all arrived into a file. The service
// compares the CRC64NVME of the whole if it is not empty. A repeated call gets the
// same answer. A try may make progress and still get a 503, as when the service
// compares a large file's SHA-256: while the answers change, such tries do not count,
// unless there are far more than one per MiB.
func (c *Client) complete(
	ctx context.Context,
	s Session,
	crc string,
	length *int64,
) (File, error) {
	body := wire.Complete{CRC64NVME: crc, Length: length}
	r := request{method: "POST", path: sessionPath(s.ID) + "/complete", json: body}
	var e envelope
	said, left := "", 100+s.Length>>20
	err := c.retry.do(ctx, func() error {
		err := c.once(ctx, r, &e)
		if hasStatus(err, 503) && err.Error() != said && left > 0 {
			said, left = err.Error(), left-1
			return again{err, true}
		}
		return err
	})
	if err != nil {
		return File{}, err
	}
	if c.guest != nil && len(e.Files) == 1 { // without its id
		return e.Files[0], nil
	}
	if i := slices.IndexFunc(e.Files, func(f File) bool { return f.ID == s.FileID() }); i >= 0 {
		return e.Files[i], nil
	}
	d, err := c.File(ctx, UserArea, s.FileID()) // a hundred newer files hide it
	return d.File, err
}

// sendPart sends one part, without retries. The service refuses bytes other than
// those that the part was signed for.
func (c *Client) sendPart(
	ctx context.Context,
	p wire.SignedPart,
	content io.ReadCloser,
	progress func(int64),
) error {
	w := watch(ctx, idle)
	defer w.end()
	body := &sending{r: content, watch: w, progress: progress, size: p.Size}
	req, err := http.NewRequestWithContext(w.ctx, p.Method, p.URL, body)
	if err != nil {
		return fmt.Errorf("%w: the address of a part: %v", ErrAnswer, err)
	}
	for name, value := range p.Headers {
		req.Header.Set(name, value)
	}
	req.ContentLength = p.Size
	if p.Size == 0 {
		req.Body = http.NoBody
	}
	resp, err := c.send(req)
	if err == nil {
		defer drain(resp.Body)
		if resp.StatusCode < 300 {
			return nil
		}
		// The address has expired, bytes were changed on the way, or an earlier try
		// still holds the part: a new signature or another try can fix that.
		if err = refusal(resp); hasStatus(err, 400, 403, 409) {
			err = again{error: err}
		}
	}
	body.takeBack()
	c.named(req.URL, err)
	return err
}

// named makes an error say that an unreachable address came from the service: the
// caller cannot fix that.
func (c *Client) named(at *url.URL, err error) {
	n, ok := errors.AsType[*network](err)
	dial, _ := errors.AsType[*net.OpError](err)
	root := at.Scheme + "://" + at.Host
	if !ok || dial == nil || dial.Op != "dial" || strings.HasPrefix(c.base, root+"/") {
		return
	}
	n.host = "the address " + root + ", where the service wants parts sent"
	if strings.Contains(at.Path, "/v1/uploads/") { // not S3's
		n.host += " (its public URL; its operator sets FERRY_PUBLIC_URL)"
	}
	n.host += ","
}

// sending is the body of a part in transfer: it counts the bytes and resets the
// watch. The transport may read on for a moment after a response; those bytes do
// not count.
type sending struct {
	r        io.ReadCloser
	watch    *watched
	progress func(int64)
	size     int64

	reading sync.Mutex // the transport may close what another goroutine reads

	mu    sync.Mutex
	sent  int64
	ended bool // stop counting
}

func (s *sending) Read(b []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	n, err := s.r.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.sent += int64(n)
		s.progress(int64(n))
		s.watch.Reset(idle)
		if s.sent == s.size {
			s.watch.Reset(5 * idle) // for the answer
		}
	}
	return n, err
}

// Close implements io.Closer.
func (s *sending) Close() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.r.Close()
}

// takeBack stops the counting and takes back what was counted.
func (s *sending) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.progress(-s.sent)
}

// ending is a reader that ends with its context.
type ending struct {
	ctx context.Context
	r   io.Reader
}

func (e ending) Read(b []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, context.Cause(e.ctx)
	}
	return e.r.Read(b)
}
