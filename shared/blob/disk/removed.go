package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ferry/shared/blob"
)

func (s *Store) removed() string { return filepath.Join(s.dir, "removed") }

// SetAside implements blob.Store. A file is renamed. A small object becomes a durable file
// first.
func (s *Store) SetAside(ctx context.Context, area blob.Area, key string, day time.Time) error {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return err
	}
	to := filepath.Join(
		s.removed(),
		day.UTC().Format(time.DateOnly),
		string(area),
		filepath.FromSlash(key),
	)
	for !missing(to) { // it was removed, put back and removed again
		to += "-"
	}
	err = os.MkdirAll(filepath.Dir(to), 0o700)
	if err == nil {
		err = os.Rename(path, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = s.setSmallAside(ctx, area, key, to)
	}
	return wrap(full(err), "setting object %s aside", key)
}

func (s *Store) setSmallAside(ctx context.Context, area blob.Area, key, to string) error {
	content, err := s.small.Read(ctx, area, key)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = s.writeFile(to, content, true, nil, 0)
	}
	for dir := filepath.Dir(to); err == nil &&
		dir != filepath.Dir(s.dir); dir = filepath.Dir(dir) {
		err = s.syncPath(dir)
	}
	if err != nil {
		return err
	}
	return s.small.Delete(ctx, area, key)
}

// dropRemoved removes what was set aside on days that ended blob.KeptDays before a time.
func (s *Store) dropRemoved(before time.Time) error {
	days, err := os.ReadDir(s.removed())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range days {
		day, parsed := time.Parse(time.DateOnly, entry.Name())
		if parsed == nil && day.AddDate(0, 0, 1+blob.KeptDays).Before(before) {
			folder := filepath.Join(s.removed(), entry.Name())
			for _, area := range blob.Areas() {
				err = errors.Join(err, os.RemoveAll(filepath.Join(folder, string(area))))
			}
			_ = os.Remove(folder) // unless somebody else has something there
		}
	}
	return err
}
