package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/wire"
)

const (
	// streams is how many parts of a stream are sent at once.
	streams = 3
	// endTime is how long aborting a session may take after a failure.
	endTime = 10 * time.Second
)

// PutStream uploads r, of any length, in parts while it is read. Each part is kept in a
// temporary file until it has arrived, at most four at a time. After an error nobody can
// resume the upload, so it is aborted. Of the source only Name and Type are used;
// Progress counts what arrives.
func (c *Client) PutStream(ctx context.Context, src Source, r io.Reader, o PutOptions) (f File, err error) {
	o.Progress = given(o.Progress, func(int64) {})
	src.Length, src.SHA256 = -1, ""
	session, err := c.begin(ctx, src, o, rand.Text())
	if err != nil {
		return File{}, err
	}
	s := &stream{client: c, session: session, source: src, progress: o.Progress, in: r}
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
	client   *Client
	session  Session
	source   Source
	progress func(int64)
	in       io.Reader
	length   int64  // of what was read
	sum      uint64 // CRC64NVME of what was read
}

// send reads one part after the other, and sends several at once. The first error ends it.
func (s *stream) send(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(streams)
	var failed error
	for number, ended := 1, false; !ended && inner.Err() == nil; number++ {
		var part *kept
		part, ended, failed = s.read()
		if failed != nil || part.size == 0 && number > 1 {
			part.discard()
			break
		}
		p := &put{
			client: s.client, source: s.source, progress: s.progress, had: s.progress, sums: make([]uint64, number),
			session: Status{Session: Session{ID: s.session.ID, PartSize: s.session.PartSize, Length: s.length}},
		}
		p.source.Content = part
		if length := s.length; ended {
			p.length = &length
		}
		g.Go(func() error {
			defer part.discard()
			return p.part(inner, number)
		})
	}
	return cmp.Or(g.Wait(), failed, context.Cause(ctx))
}

// read copies the next part to a temporary file.
func (s *stream) read() (part *kept, ended bool, err error) {
	f, err := os.CreateTemp("", "ferry-part-*")
	if err != nil {
		return nil, false, fmt.Errorf("keeping a part: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file can be removed, a kill leaves nothing
	part = &kept{File: f, from: s.length}
	sum, n, err := wire.CRC64NVME(io.TeeReader(io.LimitReader(s.in, s.session.PartSize), f))
	if err != nil {
		return part, false, fmt.Errorf("reading %s: %w", s.source.Name, err)
	}
	part.size, s.length, s.sum = n, s.length+n, wire.CombineCRC64(s.sum, sum, n)
	return part, n < s.session.PartSize, nil
}

// kept is a part in a temporary file.
type kept struct {
	*os.File
	from, size int64 // its place in the stream
}

// ReadAt implements io.ReaderAt for places in the stream.
func (k *kept) ReadAt(b []byte, at int64) (int, error) { return k.File.ReadAt(b, at-k.from) }

func (k *kept) discard() {
	if k != nil {
		_ = k.Close()
		_ = os.Remove(k.Name())
	}
}
