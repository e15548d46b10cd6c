package client

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"slices"
	"strconv"

	"ferry/shared/bundle"
	"ferry/shared/wire"
)

// gap is the most unwanted bytes in a row that are fetched rather than skipped with another
// request.
const gap = 256 << 10

// load fetches what is missing, and makes folders.
func (u *unpacking) load(ctx context.Context, from *origin, connections int) error {
	for _, i := range u.missing {
		if err := u.empty(i); err != nil {
			return err
		}
	}
	err := parallel(ctx, connections, slices.Values(u.runs()), func(ctx context.Context, r *run) error {
		return u.fetch(ctx, from, r)
	})
	if err != nil {
		return err
	}
	if err := u.setFolderTimes(); err != nil || len(u.wrong) == 0 {
		return err
	}
	if more := len(u.wrong) - 1; more > 0 {
		return fmt.Errorf("%w; other files with wrong bytes: %d", u.wrong[0], more)
	}
	return u.wrong[0]
}

// empty makes an entry if it has no bytes: a folder or an empty file.
func (u *unpacking) empty(entry int) error {
	e := u.entries[entry]
	if e.IsFolder() {
		return u.root.MkdirAll(u.target(e), 0o777)
	}
	if e.Length > 0 {
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

// run is a stretch of the bundle that one request fetches.
type run struct {
	span
	shares []share // what to take from it, in order
}

// share is the part of a file in a run: bytes, and the header before them if the file begins there.
type share struct {
	entry int
	span
}

// runs cuts what is missing into requests of about rangeSize bytes.
func (u *unpacking) runs() (all []*run) {
	r := &run{}
	for _, i := range u.missing {
		e := u.entries[i]
		if e.Length == 0 {
			continue
		}
		for at := e.Header; at < e.Offset+e.Length; at = r.To {
			if len(all) == 0 || at-r.From >= rangeSize || at-r.To > gap {
				r = &run{span: span{From: at}}
				all = append(all, r)
			}
			r.To = min(e.Offset+e.Length, max(r.From+rangeSize, e.Offset+1)) // a header is never cut
			r.shares = append(r.shares, share{i, span{at, r.To}})
		}
	}
	return all
}

// fetch loads a run. It discards the bytes between its shares.
func (u *unpacking) fetch(ctx context.Context, from *origin, r *run) error {
	in := from.read(ctx, r.span)
	defer in.Close()
	buf := make([]byte, 256<<10)
	for _, s := range r.shares {
		if _, err := io.CopyN(io.Discard, in, s.From-in.From); err != nil {
			return err
		}
		if err := u.take(in, s, buf); err != nil {
			return err
		}
	}
	return nil
}

// take stores a share, which is next in a run.
func (u *unpacking) take(in *reader, s share, buf []byte) error {
	e := u.entries[s.entry]
	if s.From < e.Offset {
		header := buf[:e.Offset-s.From]
		if _, err := io.ReadFull(in, header); err != nil {
			return err
		}
		if err := e.Agrees(header); err != nil {
			return err
		}
	}
	a, err := u.arrive(s.entry)
	if err != nil {
		return err
	}
	sum, length := crc32.NewIEEE(), s.To-in.From
	progress := writer(func(b []byte) error { u.progress(int64(len(b))); return nil })
	to := io.MultiWriter(io.NewOffsetWriter(a.file, in.From-e.Offset), sum, progress)
	if _, err := io.CopyBuffer(to, io.LimitReader(in, length), buf); err != nil {
		return err
	}
	if !u.add(a, s.To, length, sum.Sum32()) {
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

// add counts a share of n bytes up to an offset in the bundle, and reports whether it was the last
// one. The checksum of the whole is the sum of the shares' checksums, each moved by the bytes that
// follow it.
func (u *unpacking) add(a *arriving, to, n int64, sum uint32) (complete bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a.sum ^= wire.CombineCRC32(sum, 0, a.Offset+a.Length-to)
	a.left -= n
	return a.left == 0
}

// finish gives a complete file its name and its time, unless its bytes are wrong. Wrong bytes do
// not stop the other files.
func (u *unpacking) finish(a *arriving) error {
	u.mu.Lock()
	delete(u.arriving, a.entry)
	if a.sum != a.CRC32 {
		u.wrong = append(
			u.wrong,
			fmt.Errorf("%w: %q has the CRC-32 %08x, not %08x",
				ErrDigest, a.Path, a.sum, a.CRC32),
		)
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
