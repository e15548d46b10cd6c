package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// rangeSize is what one connection fetches at once of a store.
	rangeSize = 16 << 20
	// saveEvery bounds how much a kill makes a download fetch again.
	saveEvery = 2 * time.Second
)

// FetchOptions say how to download a file, and where to.
type FetchOptions struct {
	Verify
	Path        string // a file, or a folder in which it gets its own name; empty is this folder
	Force       bool   // replace a file of the name
	Connections int    // at once, if the service refers to a store; 4 if 0
}

// Fetched is a file that was downloaded.
type Fetched struct {
	Remote
	Path     string
	Verified []string // by which digests
}

// Fetch downloads the file behind a link. Until it is whole its bytes are in a
// file named path.part, with which the next Fetch goes on. It needs no login.
func (c *Client) Fetch(ctx context.Context, link string, o FetchOptions) (Fetched, error) {
	remote, err := c.Head(ctx, link)
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
	o.started(remote, p.have())
	if err := c.fill(ctx, c.origin(link, remote), p, o); err != nil {
		return got, err
	}
	digests := newDigests(remote.SHA256, o.CRC64NVME)
	if _, err := p.file.Seek(0, 0); err != nil {
		return got, &local{err}
	}
	if err := digests.read(ctx, p.file); err != nil {
		if errors.Is(err, ErrDigest) {
			p.forget() // going on with wrong bytes leads nowhere
		}
		return got, err
	}
	got.Verified = digests.names()
	return got, p.finish(got.Path, o.Force)
}

// replaceable tells whether a file may get this name. A device or a folder is
// never replaced.
func replaceable(path string, force bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // opening it tells more
	}
	if mode := info.Mode().Type(); mode != 0 && mode != os.ModeSymlink {
		return fmt.Errorf("%w, and is not a regular one: %s", ErrExists, path)
	}
	if !force {
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	return nil
}

// target is where a file goes.
func target(path, name string) string {
	if path == "" {
		return name
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, name)
	}
	return path
}

// fill fetches what is missing, and records what has come when that fails.
func (c *Client) fill(ctx context.Context, o *origin, p *partial, opts FetchOptions) (err error) {
	if err := p.save(); err != nil { // whose bytes these are is known from the begin
		return err
	}
	defer func() {
		if err != nil {
			_ = p.save() // or the next one fetches more again
		}
	}()
	connections, size := 1, o.remote.Length
	if size > rangeSize {
		store, err := o.refers(ctx)
		if err != nil {
			return err
		}
		if store {
			connections, size = max(1, cmp.Or(opts.Connections, 4)), rangeSize
		}
	}
	stop := every(saveEvery, p.save)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	for range connections {
		g.Go(func() error {
			for s := p.take(size); s != nil; s = p.take(size) {
				if err := c.span(ctx, o, p, s, opts.progress); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// span fetches one missing span, in as many tries as it takes.
func (c *Client) span(ctx context.Context, o *origin, p *partial, s *span, progress func(int64)) error {
	return c.retry.do(ctx, func() error {
		_, err := o.copy(ctx, *s, func(b []byte, _ int64) error { return p.write(s, b) }, progress)
		return err
	})
}

// every calls f from time to time until stop is called. An error of f is not
// told: it is that of the next, which is told.
func every(d time.Duration, f func() error) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-t.C:
				_ = f()
			}
		}
	}()
	return func() { close(end); <-ended }
}
