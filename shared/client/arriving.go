package client

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"ferry/shared/bundle"
)

// gap is how many bytes that nobody wants are fetched rather than skipped by another request.
const gap = 256 << 10

// load fetches what is missing, and makes folders.
func (u *unpacking) load(ctx context.Context, from *origin, connections int) error {
	for i, e := range u.entries {
		if !e.IsFolder() && e.Length > 0 {
			continue
		}
		if err := u.empty(i); err != nil {
			return err
		}
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(max(1, cmp.Or(connections, 4)))
	for r := range u.runs(rangeSize) {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error {
			return from.client.retry.do(inner, func() error { return from.copy(inner, r.span, r.write) })
		})
	}
	if err := cmp.Or(g.Wait(), context.Cause(ctx)); err != nil {
		return err
	}
	if err := u.setFolderTimes(); err != nil || len(u.wrong) == 0 {
		return err
	}
	if more := len(u.wrong) - 1; more > 0 {
		return fmt.Errorf("%w; so are %d more", u.wrong[0], more)
	}
	return u.wrong[0]
}

// empty makes a folder or an empty file, unless it is here.
func (u *unpacking) empty(entry int) error {
	e := u.entries[entry]
	if e.IsFolder() {
		return u.root.MkdirAll(u.target(e), 0o777)
	}
	if _, missing := slices.BinarySearch(u.missing, entry); !missing {
		return nil
	}
	a, err := u.arrive(entry)
	if err != nil {
		return err
	}
	return u.finish(a)
}

// setFolderTimes comes last, as each new file changes the time of its folder.
func (u *unpacking) setFolderTimes() error {
	for _, e := range slices.Backward(u.entries) {
		if e.IsFolder() {
			if err := u.root.Chtimes(u.target(e), e.Modified, e.Modified); err != nil {
				return err
			}
		}
	}
	return nil
}

// run is a stretch of the bundle that one request fetches. Its From advances.
type run struct {
	span
	u      *unpacking
	shares []share // that have not fully arrived, in order
}

// share is what a run has of a file: bytes, and its header if it begins there.
type share struct {
	entry int
	span
	length int64  // of its bytes, without the header
	header []byte // what has arrived of it
	sum    uint32 // CRC-32 of the bytes that have arrived
}

// runs cuts what is missing into requests of about size bytes.
func (u *unpacking) runs(size int64) iter.Seq[*run] {
	return func(yield func(*run) bool) {
		r := &run{u: u}
		for _, i := range u.missing {
			e := u.entries[i]
			if e.Length == 0 {
				continue
			}
			for at := e.Header; at < e.Offset+e.Length; {
				if len(r.shares) > 0 && (at-r.From >= size || at-r.To > gap) {
					if !yield(r) {
						return
					}
					r = &run{u: u}
				}
				if len(r.shares) == 0 {
					r.From = at
				}
				r.To = min(e.Offset+e.Length, max(r.From+size, e.Offset+1)) // a header is never cut
				r.shares = append(r.shares, share{entry: i, span: span{at, r.To}, length: r.To - max(at, e.Offset)})
				at = r.To
			}
		}
		if len(r.shares) > 0 {
			yield(r)
		}
	}
}

// write takes the next bytes of a run.
func (r *run) write(b []byte) error {
	for len(b) > 0 {
		s := &r.shares[0] // a run ends with the last one
		n := min(int64(len(b)), s.From-r.From)
		if n == 0 { // no gap
			n = min(int64(len(b)), s.To-r.From)
			if err := r.u.take(s, b[:n]); err != nil {
				return err
			}
		}
		r.From, b = r.From+n, b[n:]
		if r.From == s.To {
			r.shares = r.shares[1:]
		}
	}
	return nil
}

// take stores the next bytes of a share, whose From advances too.
func (u *unpacking) take(s *share, b []byte) error {
	e := u.entries[s.entry]
	if header := min(int64(len(b)), e.Offset-s.From); header > 0 {
		s.header = append(s.header, b[:header]...)
		if s.From, b = s.From+header, b[header:]; s.From == e.Offset {
			if err := e.Agrees(s.header); err != nil {
				return err
			}
		}
	}
	if len(b) == 0 {
		return nil
	}
	a, err := u.arrive(s.entry)
	if err != nil {
		return err
	}
	if _, err := a.file.WriteAt(b, s.From-e.Offset); err != nil {
		return err
	}
	u.progress(int64(len(b)))
	s.From, s.sum = s.From+int64(len(b)), crc32.Update(s.sum, crc32.IEEETable, b)
	if s.From < s.To || !a.add(s) {
		return nil
	}
	return u.finish(a)
}

// arriving is a file of which some bytes are here, under a temporary name.
type arriving struct {
	entry int
	bundle.Entry
	name string // temporary, in the root
	file *os.File

	mu   sync.Mutex
	left int64  // bytes in shares that have not fully arrived
	sum  uint32 // what the shares contribute to the CRC-32
}

// arrive returns a file that is about to arrive, or is arriving.
func (u *unpacking) arrive(entry int) (*arriving, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.arriving[entry]; a != nil {
		return a, nil
	}
	e, mode := u.entries[entry], os.FileMode(0o666)
	if e.Executable {
		mode = 0o777
	}
	name := path.Join(u.temporary(), strconv.Itoa(entry))
	f, err := u.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	a := &arriving{entry: entry, Entry: e, name: name, file: f, left: e.Length}
	u.arriving[entry] = a
	return a, nil
}

// add counts a share that has arrived, and reports whether it was the last one. The checksum of the
// whole is the sum of those of the shares, each moved by the bytes that follow it.
func (a *arriving) add(s *share) (complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sum ^= bundle.CombineCRC32(s.sum, 0, a.Offset+a.Length-s.To)
	a.left -= s.length
	return a.left == 0
}

// finish gives a complete file its name and its time, unless its bytes are wrong: then the others
// go on.
func (u *unpacking) finish(a *arriving) error {
	u.mu.Lock()
	delete(u.arriving, a.entry)
	if a.sum != a.CRC32 {
		u.wrong = append(u.wrong, fmt.Errorf("%w: %q has the CRC-32 %08x, not %08x", ErrDigest, a.Path, a.sum, a.CRC32))
	}
	u.mu.Unlock()
	if err := a.file.Close(); err != nil || a.sum != a.CRC32 {
		return err
	}
	if err := u.root.Chtimes(a.name, a.Modified, a.Modified); err != nil {
		return err
	}
	target := u.target(a.Entry)
	if err := u.root.MkdirAll(path.Dir(target), 0o777); err != nil {
		return err
	}
	return rename(u.root, a.name, target, u.force)
}
