package disk

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"ferry/shared/blob"
)

// Copy implements blob.Store with a second link to the same file, or by copying
// the bytes where links are not supported. Both objects then count as modified
// now, so that a new copy does not look like an old object.
func (s *Store) Copy(
	ctx context.Context,
	from blob.Area,
	fromKey string,
	to blob.Area,
	toKey string,
) error {
	source, err := s.path(ctx, from, fromKey)
	target, targetErr := s.path(ctx, to, toKey)
	if err = cmp.Or(err, targetErr); err != nil {
		return err
	}
	err = s.copyFile(source, target)
	switch {
	case unsupported(err):
		return s.copyBytes(ctx, from, fromKey, to, toKey)
	case errors.Is(err, fs.ErrNotExist) && missing(source):
		err = s.small.Copy(ctx, from, fromKey, to, toKey)
	}
	return wrap(full(err), "copying object %s", fromKey)
}

func (s *Store) copyFile(source, target string) error {
	now := time.Now()
	if err := os.Chtimes(source, now, now); err != nil {
		return err
	}
	err := s.inFolder(target, func() error { return s.link(source, target) })
	if err != nil && !errors.Is(err, fs.ErrExist) { // it exists if this is a repetition
		return err
	}
	return s.syncPath(filepath.Dir(target))
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// copyBytes may use the reserve, because a file that is deleted is copied first.
func (s *Store) copyBytes(
	ctx context.Context,
	from blob.Area,
	fromKey string,
	to blob.Area,
	toKey string,
) error {
	r, err := s.Open(ctx, from, fromKey)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := s.create(ctx, to, toKey, r, -1, 0); !errors.Is(err, blob.ErrExists) {
		return err
	}
	return nil
}

// unsupported reports whether a link failed because the file system has none.
func unsupported(err error) bool {
	kinds := []error{
		syscall.EPERM, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK,
		syscall.EXDEV,
	}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
