package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/wire"
)

// Source is a file to upload. Content is read at several places at once, and
// twice: first for the checksum of a part.
type Source struct {
	Name    string
	Type    string // a media type, or empty
	Length  int64  // in bytes
	SHA256  string // in hexadecimal, if known; see the package on who compares it
	Content io.ReaderAt

	// Check is asked when all has been read, before the file is made; it may be
	// nil. Its error, such as ErrChanged, ends the upload.
	Check func() error
}

// PutOptions say how to upload, and what to go on with.
type PutOptions struct {
	Delivery
	Connections int   // parts at once; 4 if 0
	PartSize    int64 // a wish; 0 leaves it to the service

	// Session is the id of a session to go on with. If it has ended, or is of
	// another length, a new one is begun. Parts of it are compared with Content.
	Session string
	// Key is the Idempotency-Key of a new session: with the same one a Put that
	// was ended before it got an answer goes on with the session that it began.
	Key string
	// Began is told the session before the first part is sent.
	Began func(Session) error
	// Progress is told how many bytes more are there; fewer, negatively, when a
	// part is sent again. It is called from several goroutines.
	Progress func(delta int64)
}

// Put uploads a file of any size in parts, several at once, and goes on where
// an earlier Put has ended. Each part and the whole are compared by CRC64NVME.
// After an error the session stays, for a Put with it in PutOptions.Session.
func (c *Client) Put(ctx context.Context, src Source, o PutOptions) (File, error) {
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	st, err := c.resume(ctx, src, o)
	if err != nil {
		return File{}, err
	}
	if o.Began != nil && st.State != "done" {
		if err := o.Began(st.Session); err != nil {
			return File{}, &local{err}
		}
	}
	f, err := c.attempt(ctx, src, o, st)
	for tries := range rivals {
		if !rivalled(err) || sleep(ctx, time.Duration(tries)*rivalWait) != nil {
			break
		}
		now, statusErr := c.Status(ctx, st.ID)
		if statusErr != nil {
			break
		}
		next, nextErr := c.attempt(ctx, src, o, now)
		if StatusOf(nextErr) != http.StatusNotFound { // else what was before tells more
			f, err = next, nextErr
		}
	}
	return f, err
}

const (
	// rivals is how often a Put goes on after another of the same session has
	// come between.
	rivals    = 5
	rivalWait = 50 * time.Millisecond
)

// rivalled tells whether another Put of the session may be the reason: it has
// completed it, is about to, or is sending a part that was there before.
func rivalled(err error) bool {
	switch StatusOf(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return false
}

// attempt sends what has not arrived, and completes the session.
func (c *Client) attempt(ctx context.Context, src Source, o PutOptions, st Status) (f File, err error) {
	if st.State == "done" {
		o.Progress(src.Length)
		return c.Complete(ctx, st.Session, nil)
	}
	p := &put{client: c, session: st.Session, content: src.Content, options: o, arrived: map[int]Arrived{}, sums: make([]uint64, st.Parts)}
	defer func() {
		if err != nil {
			o.Progress(-p.counted.Load())
		}
	}()
	for _, a := range st.Arrived {
		p.arrived[a.Number] = a
	}
	err = p.parts(ctx)
	gone := errors.Is(err, ErrNotFound)
	if err != nil && !gone {
		return File{}, err
	}
	sum := p.whole()
	if gone { // or one object already, that is no file yet
		if sum, _, err = checksum(ctx, io.NewSectionReader(src.Content, 0, src.Length)); err != nil {
			return File{}, &local{fmt.Errorf("reading %s: %w", src.Name, err)}
		}
	}
	if src.Check != nil {
		if err := src.Check(); err != nil {
			return File{}, &local{err}
		}
	}
	if f, err = c.Complete(ctx, st.Session, &sum); err == nil {
		p.progress(src.Length - p.counted.Load())
	}
	return f, err
}

// resume finds the session to go on with, or begins one.
func (c *Client) resume(ctx context.Context, src Source, o PutOptions) (Status, error) {
	id := o.Session
	if id == "" {
		s, err := c.begin(ctx, src, o, cmp.Or(o.Key, rand.Text()))
		if o.Key != "" && errors.Is(err, ErrNotFound) { // the key's session has ended
			s, err = c.begin(ctx, src, o, rand.Text())
		}
		if err != nil || o.Key == "" {
			return Status{Session: s}, err
		}
		id = s.ID // perhaps of a session that has been gone on with, or ended
	}
	st, err := c.Status(ctx, id)
	if err == nil && st.check(src.Length) == nil {
		return st, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Status{}, err
	}
	s, err := c.begin(ctx, src, o, rand.Text())
	return Status{Session: s}, err
}

func (c *Client) begin(ctx context.Context, src Source, o PutOptions, key string) (Session, error) {
	return c.Begin(ctx, BeginOptions{
		Delivery: o.Delivery, Name: src.Name, Type: src.Type, Length: src.Length, SHA256: src.SHA256, PartSize: o.PartSize, Key: key,
	})
}

// put is one upload under way.
type put struct {
	client  *Client
	session Session
	content io.ReaderAt
	options PutOptions
	arrived map[int]Arrived
	sums    []uint64 // CRC64NVME of each part, in order
	counted atomic.Int64
}

func (p *put) progress(delta int64) {
	p.counted.Add(delta)
	p.options.Progress(delta)
}

// parts sends all parts, the first error ends it.
func (p *put) parts(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(max(1, cmp.Or(p.options.Connections, 4)))
	for number := 1; number <= p.session.Parts && inner.Err() == nil; number++ {
		g.Go(func() error { return p.part(inner, number) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx) // ended before all parts were begun
}

// part sends one part, unless it is there.
func (p *put) part(ctx context.Context, number int) error {
	sum, err := p.sum(ctx, number)
	if err != nil {
		return err
	}
	p.sums[number-1] = sum
	if a, ok := p.arrived[number]; ok && a.Size == p.session.size(number) && a.CRC64NVME == FormatCRC(sum) {
		p.progress(a.Size)
		return nil
	}
	return p.client.retry.do(ctx, func() error {
		err := p.send(ctx, number, sum)
		if StatusOf(err) == http.StatusBadRequest { // not what was announced: changed here, or on the way
			if now, readErr := p.sum(ctx, number); readErr != nil || now != sum {
				return errors.Join(ErrChanged, readErr)
			}
		}
		return err
	})
}

func (p *put) send(ctx context.Context, number int, sum uint64) error {
	signed, err := p.client.sign(ctx, p.session.ID, map[int]uint64{number: sum})
	if err != nil {
		return err
	}
	return p.client.sendPart(ctx, signed[0], p.section(number), p.progress)
}

func (p *put) section(number int) *io.SectionReader {
	return io.NewSectionReader(p.content, int64(number-1)*p.session.PartSize, p.session.size(number))
}

// sum is the CRC64NVME of a part.
func (p *put) sum(ctx context.Context, number int) (uint64, error) {
	section := p.section(number)
	sum, n, err := checksum(ctx, section)
	if err != nil {
		return 0, &local{fmt.Errorf("reading %s: %w", p.session.Name, err)}
	}
	if n != section.Size() {
		return 0, fmt.Errorf("%w: it has become shorter", ErrChanged)
	}
	return sum, nil
}

// whole is the sum of all parts together.
func (p *put) whole() uint64 {
	var all uint64
	for i, sum := range p.sums {
		all = wire.CombineCRC64(all, sum, p.session.size(i+1))
	}
	return all
}
