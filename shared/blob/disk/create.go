package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

const bufferSize = 256 << 10

// Create implements blob.Store. An object that fits into one buffer is written
// under its name, others aside first.
func (s *Store) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return blob.Written{}, err
	}
	buf, release := s.buffer(size)
	defer release()
	in := &input{r: r, announced: size, buf: buf, sum: crc64nvme.New()}
	first, err := in.next(ctx)
	var j *journal
	if err == nil && in.ended && len(first) <= maxJournaled {
		j, err = s.journal.get()
	}
	switch {
	case err != nil:
	case j != nil:
		err = s.createSmall(j, area, key, path, first)
	default:
		err = s.createLarge(ctx, path, first, in)
	}
	if err != nil {
		return blob.Written{}, fmt.Errorf("writing object %s: %w", key, full(err))
	}
	return blob.Written{Size: in.size, CRC64NVME: in.sum.Sum64()}, nil
}

// createSmall writes an object at once and leaves it to the journal to make it
// durable. A kill in between can leave a file that is empty or cut off, which
// nothing refers to yet.
func (s *Store) createSmall(j *journal, area blob.Area, key, path string, content []byte) error {
	if err := s.makeOwner(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return blob.ErrExists
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Write(content); err == nil {
		err = j.add(area, key, content)
	}
	if errors.Is(err, errNoJournal) {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// createLarge writes an object aside, and gives the file its name when all
// bytes are there. That the object is durable takes two syncs, of the file and
// then, named, of its folder; where one of the named file does both, it is left
// at that.
func (s *Store) createLarge(ctx context.Context, path string, first []byte, in *input) error {
	aside := filepath.Join(s.tmp(), rand.Text())
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(aside)
	defer f.Close()
	_, err = f.Write(first)
	for err == nil && !in.ended {
		var more []byte
		if more, err = in.next(ctx); err == nil {
			_, err = f.Write(more)
		}
	}
	if err != nil {
		return err
	}
	return s.place(f, path)
}

// buffer is never larger than an object of known size, but for one byte, which
// shows whether there is more than announced.
func (s *Store) buffer(size int64) (buf []byte, release func()) {
	if size >= 0 && size < bufferSize {
		return make([]byte, size+1), func() {}
	}
	pooled := s.buffers.Get().(*[]byte)
	return *pooled, func() { s.buffers.Put(pooled) }
}

// input gives the bytes of an object a buffer at a time, sums them up, and
// checks that they are as many as announced.
type input struct {
	r         io.Reader
	announced int64 // or -1
	buf       []byte
	size      int64 // so far
	sum       hash.Hash64
	ended     bool
}

// next returns the next bytes, which are good until it is called again.
func (in *input) next(ctx context.Context) ([]byte, error) {
	n, err := fill(in.r, in.buf)
	if in.ended = err == io.EOF; err != nil && !in.ended {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in.size += int64(n)
	if in.announced >= 0 && (in.size > in.announced || in.ended && in.size != in.announced) {
		return nil, blob.ErrLength
	}
	in.sum.Write(in.buf[:n])
	return in.buf[:n], nil
}

// fill reads until buf is full or the reader has an error. Unlike io.ReadFull
// it returns that error as it is, so that an end can be told from a cut.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for empty := 0; n < len(buf) && err == nil; {
		var m int
		m, err = r.Read(buf[n:])
		n += m
		if empty++; m > 0 {
			empty = 0
		}
		if empty == 100 {
			return n, io.ErrNoProgress
		}
	}
	return n, err
}

// place gives a finished file its name, which must be free, durably.
func (s *Store) place(f *os.File, path string) error {
	if err := s.makeOwner(filepath.Dir(path)); err != nil {
		return err
	}
	if !s.ordered && !s.noSync { // else the name might become durable before the bytes
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := s.name(f.Name(), path); err != nil {
		return err
	}
	if err := s.keep(f, filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// keep makes a file that has its name durable, and the name.
func (s *Store) keep(f *os.File, dir string) error {
	if s.ordered && !s.noSync {
		return f.Sync()
	}
	return s.sync(dir)
}

// name puts a file under a free name. Renaming would replace what is there, so
// where links are not supported one create at a time looks and renames.
func (s *Store) name(aside, path string) error {
	err := s.link(aside, path)
	if unsupported(err) {
		s.placing.Lock()
		defer s.placing.Unlock()
		if _, err := os.Lstat(path); err == nil {
			return blob.ErrExists
		}
		return os.Rename(aside, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return blob.ErrExists
	}
	return err
}
