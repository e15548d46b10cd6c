package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ferry/shared/blob"
)

// Copy implements blob.Store with a second link to the same file, or by
// copying the bytes where links are not supported. Both objects then count as
// modified now, so that a new copy is not taken for an old object.
func (s *Store) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	source, err := s.path(ctx, from, fromKey)
	if err != nil {
		return err
	}
	target, err := s.path(ctx, to, toKey)
	if err != nil {
		return err
	}
	now := time.Now()
	err = os.Chtimes(source, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return blob.ErrNotFound
	}
	if err == nil {
		err = s.makeOwner(filepath.Dir(target))
	}
	if err == nil {
		err = s.link(source, target)
	}
	switch {
	case unsupported(err):
		return s.copyBytes(ctx, from, fromKey, to, toKey)
	case errors.Is(err, fs.ErrNotExist) && missing(source): // removed since its time was set
		return blob.ErrNotFound
	case err == nil || errors.Is(err, fs.ErrExist): // it was copied before
		err = s.keepCopy(target)
	}
	if err != nil {
		return fmt.Errorf("copying object %s: %w", fromKey, full(err))
	}
	return nil
}

// keepCopy makes a copy's name durable, and its bytes, which so far the journal
// may know alone, and under the first name.
func (s *Store) keepCopy(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !s.ordered && !s.noSync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return s.keep(f, filepath.Dir(path))
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (s *Store) copyBytes(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	r, err := s.Open(ctx, from, fromKey)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := s.Create(ctx, to, toKey, r, -1); !errors.Is(err, blob.ErrExists) {
		return err
	}
	return nil
}

// unsupported reports that a link failed because of the file system's kind.
func unsupported(err error) bool {
	for _, kind := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK, syscall.EXDEV} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
