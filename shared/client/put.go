package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/retry"
	"ferry/shared/wire"
)

// Source is a file to upload; Bundle makes one from several files. Content is read in several
// places at the same time, and each place twice: first for the checksum of a part.
type Source struct {
	Name    string
	Type    string // a media type, or empty
	Length  int64  // in bytes
	SHA256  string // in hexadecimal, if known; the service compares it
	Content io.ReaderAt

	files int64 // of a bundle
	// parts cuts a bundle, which has no Content, into parts of size bytes.
	parts func(size int64) parts

	// Check is called when everything has been read, before the service makes the
	// file; it may be nil. Its error, such as ErrChanged, ends the upload.
	Check func() error
}

// PutOptions say how to upload, and what to resume.
type PutOptions struct {
	Delivery
	Connections int   // parts in parallel; 4 if 0
	PartSize    int64 // the wanted size; 0 leaves it to the service

	// Session is the id of a session to resume. If it has ended, or is for another length, Put
	// begins a new one. The parts that have arrived are compared with Content.
	Session string
	// Key is the Idempotency-Key of a new session. If a Put ended before it got an
	// answer, another with the same key resumes the session that it began.
	Key string
	// Began gets the session before the first part is sent.
	Began func(Session) error
	// Had gets the numbers of bytes that the service has from an earlier Put; if nil,
	// Progress gets them. It is called from several goroutines.
	Had func(n int64)
	// Progress gets the number of newly arrived bytes, negative when a part is
	// sent again. It is called from several goroutines.
	Progress func(delta int64)
}

const (
	// rivals is how often a Put retries because of another Put of the same session.
	rivals     = 5
	rivalPause = 50 * time.Millisecond

	// keptPart is the size in bytes up to which the only part of a bundle is kept in memory.
	keptPart = 8 << 20

	// streams is how many parts of a stream are sent at once.
	streams = 3
	// endTime is how long aborting a session may take after a failure.
	endTime = 10 * time.Second
)

// Put uploads a file of any size in parts, several in parallel, and resumes where an
// earlier Put ended. The service compares the CRC64NVME of each part and of the
// whole. After an error the session stays, for a Put with PutOptions.Session.
func (c *Client) Put(ctx context.Context, src Source, o PutOptions) (File, error) {
	o.Progress = given(o.Progress, func(int64) {})
	o.Had = given(o.Had, o.Progress)
	st, err := c.resume(ctx, src, o)
	if err != nil {
		return File{}, err
	}
	if o.Began != nil && st.State != "done" {
		if err := o.Began(st.Session); err != nil {
			return File{}, err
		}
	}
	return c.despiteRivals(ctx, src, o, st)
}

// despiteRivals transfers a session. It retries because another Put of the same session may have interfered: it has
// completed the session, is about to, or is sending a part again.
func (c *Client) despiteRivals(
	ctx context.Context,
	src Source,
	o PutOptions,
	st Status,
) (f File, err error) {
	backoff := retry.Backoff{
		First:   rivalPause,
		Longest: 4 * rivalPause,
		Steady:  true,
		Tries:   rivals + 1,
	}
	for try := range backoff.Loop(ctx) {
		if try.Failed > 0 {
			now, failed := c.Status(ctx, st.ID)
			if failed != nil {
				break
			}
			st = now
		}
		next, failed := c.attempt(ctx, src, o, st)
		if try.Failed == 0 || !hasStatus(failed, 404) { // otherwise the earlier outcome tells more
			f, err = next, failed
		}
		if !hasStatus(err, 400, 404, 409) {
			break
		}
	}
	return f, err
}

// given returns f, or otherwise if f is nil.
func given(f, otherwise func(int64)) func(int64) {
	if f == nil {
		return otherwise
	}
	return f
}

// resume finds the session to resume, or begins one.
func (c *Client) resume(ctx context.Context, src Source, o PutOptions) (Status, error) {
	id := o.Session
	if id == "" && o.Key != "" {
		s, err := c.begin(ctx, src, o, o.Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Status{}, err
		}
		id = s.ID // a new session, or one that has parts by now; "" if the key's session has ended
	}
	if id != "" {
		st, err := c.Status(ctx, id)
		if err == nil && st.check(src.Length) == nil ||
			err != nil && !errors.Is(err, ErrNotFound) {
			return st, err
		}
	}
	s, err := c.begin(ctx, src, o, rand.Text())
	return Status{Session: s}, err
}

// attempt sends what has not arrived, and completes the session.
func (c *Client) attempt(
	ctx context.Context,
	src Source,
	o PutOptions,
	st Status,
) (f File, err error) {
	if st.State == "done" {
		o.Had(src.Length)
		return c.complete(ctx, st.Session, "", nil)
	}
	p := &put{
		client:  c,
		session: st,
		source:  src,
		parts:   src.cut(st.Session),
		sums:    make([]uint64, st.Parts),
	}
	var counted atomic.Int64
	p.progress = func(n int64) { counted.Add(n); o.Progress(n) }
	p.had = func(n int64) { counted.Add(n); o.Had(n) }
	arrived := int64(0) // all bytes, once the file is complete
	defer func() { o.Progress(arrived - counted.Load()) }()
	sum, err := p.send(ctx, o.Connections)
	if err == nil && src.Check != nil {
		err = changed(src.Check())
	}
	if err != nil {
		return File{}, err
	}
	if f, err = c.complete(ctx, st.Session, wire.CRC64Text(sum), nil); err == nil {
		arrived = src.Length
	}
	return f, err
}

// put is an upload in progress.
type put struct {
	client        *Client
	session       Status
	source        Source
	parts         parts
	progress, had func(delta int64)
	sums          []uint64 // CRC64NVME of each part, in order
}

// parts makes the parts of a source, each independently and as often as needed. It is safe for
// concurrent use.
type parts interface {
	// Open returns a reader of a part, by its number from 1. Nothing is open before it is read.
	Open(ctx context.Context, number int) io.ReadCloser
	// Order returns the numbers of all parts, in the order in which they are sent.
	Order() []int
}

// cut returns the parts of a source.
func (src Source) cut(s Session) parts {
	if src.parts != nil {
		return src.parts(s.PartSize)
	}
	return sections{src.Content, s}
}

// sections are the parts of a file.
type sections struct {
	content io.ReaderAt
	session Session
}

func (s sections) Open(_ context.Context, number int) io.ReadCloser {
	return io.NopCloser(io.NewSectionReader(
		s.content,
		int64(number-1)*s.session.PartSize,
		s.session.size(number),
	))
}

func (s sections) Order() (numbers []int) {
	for i := range s.session.Parts {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// part is a part to send.
type part struct {
	number int
	size   int64
	open   func(context.Context) io.ReadCloser
	sum    uint64   // CRC64NVME
	file   *os.File // with the content of a stream's part; temporary
	length *int64   // of a stream, with its last part
}

// send sends all parts and returns the CRC64NVME of the whole. The first error
// ends it.
func (p *put) send(ctx context.Context, connections int) (whole uint64, err error) {
	err = p.each(ctx, connections, p.missing)
	if errors.Is(err, ErrNotFound) { // the parts are one object by now, and perhaps not yet a file
		err = p.each(ctx, connections, p.read)
	}
	for i, sum := range p.sums {
		whole = wire.CombineCRC64(whole, sum, p.session.size(i+1))
	}
	return whole, err
}

// each calls do for all parts, several at once. The first error ends it.
func (p *put) each(
	ctx context.Context,
	connections int,
	do func(context.Context, part) error,
) error {
	return parallel(ctx, connections, slices.Values(p.parts.Order()), func(ctx context.Context, number int) error {
		open := func(ctx context.Context) io.ReadCloser { return p.parts.Open(ctx, number) }
		return do(ctx, part{number: number, size: p.session.size(number), open: open})
	})
}

// parallel calls do for each of several things, for a few at once; 0 is the usual number. The first error ends it.
func parallel[T any](
	ctx context.Context,
	atOnce int,
	all iter.Seq[T],
	do func(context.Context, T) error,
) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(max(1, cmp.Or(atOnce, 4)))
	for one := range all {
		g.Go(func() error { return do(inner, one) })
		if inner.Err() != nil {
			break
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx) // it may have ended before all were begun
}

// read notes the checksum of a part.
func (p *put) read(ctx context.Context, one part) (err error) {
	p.sums[one.number-1], err = p.sum(ctx, one)
	return err
}

// missing sends one part, unless the service has it. It reads the part twice. The only part of a
// small bundle, which may have thousands of files, it reads once.
func (p *put) missing(ctx context.Context, one part) error {
	if p.source.parts != nil && p.session.Parts == 1 && one.size <= keptPart {
		r := one.open(ctx)
		defer r.Close()
		text := make([]byte, one.size)
		if _, err := io.ReadFull(ending{ctx, r}, text); err != nil {
			return changed(fmt.Errorf("reading %s: %w", p.source.Name, err))
		}
		one.open = func(context.Context) io.ReadCloser {
			return io.NopCloser(bytes.NewReader(text))
		}
	}
	if err := p.read(ctx, one); err != nil {
		return err
	}
	one.sum = p.sums[one.number-1]
	there := Arrived{Number: one.number, Size: one.size, CRC64NVME: wire.CRC64Text(one.sum)}
	if slices.Contains(p.session.Arrived, there) {
		p.had(one.size)
		return nil
	}
	return p.part(ctx, one)
}

// part sends one part.
func (p *put) part(ctx context.Context, one part) error {
	return p.client.retry.do(ctx, func() error {
		signed, err := p.client.sign(ctx, p.session.ID, one)
		if err == nil {
			err = p.client.sendPart(ctx, signed, one.open(ctx), p.progress)
		}
		// The bytes were refused or not fully sent: they may have changed here.
		if err != nil && hasStatus(err, 0, 400) {
			if now, readErr := p.sum(ctx, one); readErr != nil || now != one.sum {
				return cmp.Or(readErr, ErrChanged)
			}
		}
		return err
	})
}

// sum returns the CRC64NVME of a part.
func (p *put) sum(ctx context.Context, one part) (uint64, error) {
	r := one.open(ctx)
	defer r.Close()
	sum, n, err := wire.CRC64NVME(ending{ctx, r})
	switch {
	case err != nil:
		return 0, changed(fmt.Errorf("reading %s: %w", p.source.Name, err))
	case n != one.size:
		return 0, fmt.Errorf("%w: it is shorter now", ErrChanged)
	}
	return sum, nil
}

// PutStream uploads r, of any length, in parts while it is read. Each part is kept in a temporary
// file until it has arrived, at most four at a time. After an error nobody can resume the upload,
// so it is aborted. Only the source's Name and Type are used; Progress counts what arrives.
func (c *Client) PutStream(
	ctx context.Context,
	src Source,
	r io.Reader,
	o PutOptions,
) (f File, err error) {
	src.Length, src.SHA256 = -1, ""
	session, err := c.begin(ctx, src, o, rand.Text())
	if err != nil {
		return File{}, err
	}
	p := put{
		client:   c,
		session:  Status{Session: session},
		source:   src,
		progress: given(o.Progress, func(int64) {}),
	}
	s := &stream{put: p, in: r}
	if err = s.send(ctx); err == nil {
		f, err = c.complete(ctx, session, wire.CRC64Text(s.sum), &s.length)
	}
	if err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		_ = c.Abort(end, session.ID) // if this fails, it expires
	}
	return f, err
}

// stream is a PutStream in progress.
type stream struct {
	put
	in     io.Reader
	length int64  // of what was read
	sum    uint64 // CRC64NVME of what was read
}

// send reads one part after the other, and sends several at once. The first error ends it.
func (s *stream) send(ctx context.Context) error {
	var failed error
	err := parallel(ctx, streams, func(yield func(*part) bool) {
		for number, more := 1, true; more; number++ {
			var next *part
			next, failed = s.read(number)
			if next == nil {
				return
			}
			more = yield(next) && next.length == nil
		}
	}, func(ctx context.Context, next *part) error {
		defer next.discard()
		return s.part(ctx, *next)
	})
	return cmp.Or(err, failed)
}

// read copies the next part to a temporary file. It returns nil if there is none; the first one
// may be empty.
func (s *stream) read(number int) (*part, error) {
	f, err := os.CreateTemp("", "ferry-part-*")
	if err != nil {
		return nil, fmt.Errorf("keeping a part: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file can be removed, a kill leaves nothing
	sum, n, err := wire.CRC64NVME(io.TeeReader(io.LimitReader(s.in, s.session.PartSize), f))
	next := &part{number: number, size: n, sum: sum, file: f}
	next.open = func(context.Context) io.ReadCloser {
		return io.NopCloser(io.NewSectionReader(f, 0, n))
	}
	if err != nil {
		err = fmt.Errorf("reading %s: %w", s.source.Name, err)
	}
	if err != nil || n == 0 && number > 1 {
		next.discard()
		return nil, err
	}
	s.length, s.sum = s.length+n, wire.CombineCRC64(s.sum, sum, n)
	if n < s.session.PartSize {
		next.length = &s.length // the length does not change any more
	}
	return next, nil
}

func (p *part) discard() {
	_ = p.file.Close()
	_ = os.Remove(p.file.Name())
}
