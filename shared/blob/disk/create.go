package disk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ferry/shared/blob"
)

const (
	bufferSize = 256 << 10

	// MaxSmall is the largest object that goes to a Small. Measured were µs of CPU
	// per object with 16 at once, and for writes the ms until the object is durable
	// (2 cores, ext4 on a virtual disk):
	//
	//	            4 KiB      16 KiB     32 KiB     64 KiB
	//	write, log  79  0.25   117  0.25  151  0.33  248  0.70
	//	write, file 590  1.0   510  1.0   630  1.4   830  1.7
	//	read, log   16         42         80         159
	//	read, file  8          18         28         49
	//
	// The log wins until its bytes, which are written twice, take as long as a
	// file. Reading costs more there: ten downloads outweigh what the upload
	// saves at 32 KiB, and five at 64 KiB.
	MaxSmall = 32 << 10
)

// Create implements blob.Store. A large object becomes a file.
func (s *Store) Create(
	ctx context.Context,
	area blob.Area,
	key string,
	r io.Reader,
	size int64,
) (blob.Written, error) {
	return s.create(ctx, area, key, r, size, s.reserve)
}

// create stores an object, and leaves reserve bytes of the disk free.
func (s *Store) create(
	ctx context.Context, area blob.Area, key string, r io.Reader, size, reserve int64,
) (blob.Written, error) {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return blob.Written{}, err
	}
	if err := s.room(reserve, max(size, 0)); err != nil {
		return blob.Written{}, wrap(err, "writing object %s", key)
	}
	buf, release := s.buffer(size)
	defer release()
	body := blob.NewBody(ctx, r, size)
	b, ended, err := body.Fill(buf)
	switch {
	case err != nil:
	case !ended || len(b) > MaxSmall || s.small == none{}:
		err = s.createLarge(ctx, area, key, path, b, ended, body, reserve)
	case !missing(path): // misses one that appears at the same moment, as createLarge does
		err = blob.ErrExists
	default:
		err = s.small.Create(ctx, area, key, b)
	}
	return body.Written(), wrap(full(err), "writing object %s", key)
}

// createLarge first checks whether a small object has the key. Then it writes a temporary file,
// and gives it its name once all bytes are durable. The first bytes are already in b; if ended,
// those are all, and body may be nil.
func (s *Store) createLarge(
	ctx context.Context, area blob.Area, key, path string, b []byte, ended bool, body *blob.Body, reserve int64,
) error {
	if _, err := s.small.Read(ctx, area, key); !errors.Is(err, blob.ErrNotFound) {
		return cmp.Or(err, blob.ErrExists)
	}
	if err := s.roomForFile(reserve); err != nil {
		return err
	}
	return s.writeFile(path, b, ended, body, reserve)
}

func (s *Store) writeFile(
	path string,
	b []byte,
	ended bool,
	body *blob.Body,
	reserve int64,
) error {
	aside := filepath.Join(s.tmp(), rand.Text())
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(aside)
	defer f.Close()
	for {
		if err := s.room(reserve, int64(len(b))); err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
		if ended {
			return s.finishKnown(f, path, body)
		}
		if b, ended, err = body.Fill(b[:cap(b)]); err != nil {
			return err
		}
	}
}

// finishKnown is finish for a file that was written in one go, so that its bytes are known.
func (s *Store) finishKnown(f *os.File, path string, body *blob.Body) error {
	err := s.finish(f, path)
	if err != nil || body == nil {
		return err
	}
	_ = os.Remove(f.Name()) // its second name; removing that later would change the file's state
	mark, _ := s.Known(f, body.Written().CRC64NVME)
	s.Know(mark)
	return nil
}

// buffer lends a buffer. For an object of known size it has at most one byte
// more, which shows whether there are more bytes than announced.
func (s *Store) buffer(size int64) (buf []byte, release func()) {
	if size >= 0 && size < bufferSize {
		return make([]byte, size+1), func() {}
	}
	pooled := s.buffers.Get().(*[]byte)
	return *pooled, func() { s.buffers.Put(pooled) }
}

// finish makes a written file durable, and then gives it its name, which must be free, and makes
// that durable too. It sets the file's time to when the object appears: any later write, even in
// the same tick of the system's clock, gives another time.
func (s *Store) finish(f *os.File, path string) error {
	now := time.Now()
	if err := os.Chtimes(f.Name(), now, now); err != nil {
		return err
	}
	if err := s.sync(f); err != nil {
		return err
	}
	if err := s.inFolder(path, func() error { return s.name(f.Name(), path) }); err != nil {
		return err
	}
	if err := s.syncPath(filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// inFolder makes the folder of a path and then calls f, which gives a file that path. If a sweep
// removes the folder in between, because it is empty, inFolder retries.
func (s *Store) inFolder(path string, f func() error) error {
	for {
		if err := s.makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		if err := f(); !errors.Is(err, fs.ErrNotExist) || !missing(filepath.Dir(path)) {
			return err
		}
	}
}

// makeFolder makes the folder of a key's first element, if it is missing. An existing
// one is durable: only one is made at a time, and Open has synced those of earlier
// processes.
func (s *Store) makeFolder(dir string) error {
	s.making.Lock()
	defer s.making.Unlock()
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = s.syncPath(filepath.Dir(dir))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// sync makes a file or a folder durable. It fails for good after the first failure: the system
// may have dropped what it could not write then, and a later success would not show that. A full
// disk is no such failure, because that passes.
func (s *Store) sync(f *os.File) error {
	if s.noSync {
		return nil
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	err := full(s.fsync(f))
	if err != nil && !errors.Is(err, blob.ErrFull) {
		err = fmt.Errorf(
			"a write to the disk failed; nothing more is written until a restart: %w",
			err,
		)
		s.failed.Store(&err)
	}
	return err
}

// syncPath makes the bytes of a file durable, or the names in a folder.
func (s *Store) syncPath(path string) error {
	if s.noSync {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(s.sync(f), f.Close())
}

// name gives a file its name, which must be free. Renaming would replace an
// existing file, so where links are not supported, one create at a time checks
// the name and renames.
func (s *Store) name(aside, path string) error {
	err := s.link(aside, path)
	if unsupported(err) {
		s.naming.Lock()
		defer s.naming.Unlock()
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
