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

// Create implements blob.Store. The bytes are written aside and synced; only
// then the file gets its name, and the folder is synced too.
func (s *Store) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return blob.Written{}, err
	}
	aside := filepath.Join(s.tmp(), rand.Text())
	defer os.Remove(aside)
	written, err := s.writeAside(ctx, aside, r, size)
	if err != nil {
		return blob.Written{}, fmt.Errorf("writing object %s: %w", key, full(err))
	}
	if err := s.place(aside, path); err != nil {
		return blob.Written{}, fmt.Errorf("placing object %s: %w", key, full(err))
	}
	return written, nil
}

// writeAside returns when all bytes are in the file and durable.
func (s *Store) writeAside(ctx context.Context, path string, r io.Reader, size int64) (blob.Written, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return blob.Written{}, err
	}
	buf, release := s.buffer(size)
	written, err := stream(ctx, f, r, size, buf)
	release()
	if err == nil && !s.noSync {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
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
func (s *Store) place(aside, path string) error {
	if err := s.makeOwner(filepath.Dir(path)); err != nil {
		return err
	}
	if err := s.name(aside, path); err != nil {
		return err
	}
	if err := s.sync(filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
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
