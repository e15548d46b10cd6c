package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

const bufferSize = 256 << 10

// Create implements blob.Store. The bytes are written aside, and the file gets
// its name when all are there. That the object is durable takes two syncs, of
// the file and then, named, of its folder; where one of the named file does
// both, it is left at that.
func (s *Store) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return blob.Written{}, err
	}
	aside := filepath.Join(s.tmp(), rand.Text())
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return blob.Written{}, fmt.Errorf("writing object %s: %w", key, full(err))
	}
	defer os.Remove(aside)
	defer f.Close()
	written, err := s.write(ctx, f, r, size)
	if err != nil {
		return blob.Written{}, fmt.Errorf("writing object %s: %w", key, full(err))
	}
	if err := s.place(f, path); err != nil {
		return blob.Written{}, fmt.Errorf("placing object %s: %w", key, full(err))
	}
	return written, nil
}

func (s *Store) write(ctx context.Context, f *os.File, r io.Reader, size int64) (blob.Written, error) {
	buf, release := s.buffer(size)
	defer release()
	written, err := stream(ctx, f, r, size, buf)
	if err == nil {
		err = ctx.Err()
	}
	return written, err
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

// stream copies r to w through buf and checks the length.
func stream(ctx context.Context, w io.Writer, r io.Reader, size int64, buf []byte) (blob.Written, error) {
	var written blob.Written
	sum := crc64nvme.New()
	for more := true; more; {
		n, err := fill(r, buf)
		if more = err == nil; err != nil && err != io.EOF {
			return written, err
		}
		if err := ctx.Err(); err != nil {
			return written, err
		}
		if written.Size += int64(n); size >= 0 && written.Size > size {
			return written, blob.ErrLength
		}
		sum.Write(buf[:n])
		if _, err := w.Write(buf[:n]); err != nil {
			return written, err
		}
	}
	if size >= 0 && written.Size != size {
		return written, blob.ErrLength
	}
	written.CRC64NVME = sum.Sum64()
	return written, nil
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
