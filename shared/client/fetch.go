package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// rangeSize is how much one connection fetches from a store with one request.
	rangeSize = 16 << 20
	// saveEvery bounds how much a download has to fetch again after a kill.
	saveEvery = 2 * time.Second
)

// FetchOptions say how to download a file, and where to.
type FetchOptions struct {
	Verify
	Path        string // a file, or a folder in which the file gets its own name; empty means this folder
	Force       bool   // replace a file of that name
	Connections int    // in parallel, if the service redirects to a store; 4 if 0
}

// Fetched is a file that was downloaded.
type Fetched struct {
	Remote
	Path     string
	Verified []string // the digests that matched
}

// Fetch downloads the file behind a link. Until the file is complete its bytes are in path.part,
// which the next Fetch resumes. Within a day, resuming does not take another download of a link
// with a limit. It needs no login.
func (c *Client) Fetch(ctx context.Context, link string, o FetchOptions) (Fetched, error) {
	from := o.Verify.from(c, link, earlierClaim(cmp.Or(o.Path, "."), link))
	remote, err := from.head(ctx)
	if err != nil {
		return Fetched{}, err
	}
	got := Fetched{Remote: remote, Path: target(o.Path, remote.Name)}
	if err := replaceable(got.Path, o.Force); err != nil {
		return got, err
	}
	p, err := openPartial(got.Path, remote)
	if err != nil {
		return got, err
	}
	defer p.file.Close()
	from.verify.Started(remote, p.have())
	from.keep = p.keep
	if from.at != link {
		p.claim = from.at
	}
	if err := c.fill(ctx, from, p, o.Connections); err != nil {
		return got, err
	}
	got.Verified, err = newDigests(remote, o.Verify).
		read(ctx, io.NewSectionReader(p.file, 0, remote.Length))
	if errors.Is(err, ErrDigest) {
		p.forget() // the next Fetch must not resume wrong bytes
	}
	if err != nil {
		return got, err
	}
	return got, p.finish(got.Path, o.Force)
}

// replaceable checks that a file may get this name. A device or a folder is never
// replaced.
func replaceable(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil // opening it will tell more
	case !info.Mode().IsRegular() && info.Mode().Type() != os.ModeSymlink:
		return fmt.Errorf("%w and is not a regular file: %s", ErrExists, path)
	case !force:
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	return nil
}

// target returns the path to write a file to.
func target(path, name string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, name)
	}
	return cmp.Or(path, name)
}

// fill fetches what is missing. From time to time, and at the end, it records what
// has arrived.
func (c *Client) fill(ctx context.Context, o *origin, p *partial, connections int) (err error) {
	if err := p.save(); err != nil { // record from the start whose bytes these are
		return err
	}
	connections, size, err := o.pieces(ctx, connections)
	if err != nil {
		return err
	}
	p.split(size)
	ended := make(chan error, 1)
	go func() {
		ended <- parallel(ctx, connections, slices.Values(p.spans), func(ctx context.Context, s *span) error {
			return o.copy(ctx, *s, func(b []byte) error { return p.write(s, b) })
		})
	}()
	for {
		select {
		case <-time.After(saveEvery):
			_ = p.save() // best effort
		case err := <-ended:
			_ = p.save() // best effort: without it the next download fetches more again
			return err
		}
	}
}

// pieces returns how many connections fetch in parallel, and how much each fetches at a time: only
// a store gets several. A request for one byte of a large file shows where its bytes come from; a
// service does not count it as a download.
func (o *origin) pieces(
	ctx context.Context,
	wanted int,
) (connections int, size int64, err error) {
	if o.remote.Length <= rangeSize {
		return 1, o.remote.Length, nil
	}
	err = o.client.retry.do(ctx, func() error {
		w := watch(ctx, idle)
		defer w.end()
		resp, _, err := o.ask(w.ctx, span{0, 1})
		if resp != nil {
			drain(resp.Body)
		}
		return err
	})
	if o.store.Load() == nil {
		return 1, o.remote.Length, err
	}
	return wanted, max(rangeSize, o.remote.Length>>14), err // whatever the length, there are not too many pieces
}
