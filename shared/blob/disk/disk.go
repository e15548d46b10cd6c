// Package disk keeps objects as plain files under one folder:
//
//	files/<owner>/<name>    the user area
//	backup/<owner>/<name>   the backup area
//	tmp/                    large objects that are being written
//	parts/<session>/        objects that arrive in parts
//	journal                 small objects that the system has not written yet
//
// One process at a time creates objects in the folder at full speed; others may
// use it too. Folders of owners stay when they become empty: there
// are few, and to remove one would race with a create in it.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ferry/shared/blob"
)

// Options change how files are written. The zero value is the safe choice.
type Options struct {
	// NoSync never waits for durable storage: a loss of power may take away
	// what was answered.
	NoSync bool
}

// Store is a blob.Store. Its methods are safe for concurrent use.
type Store struct {
	dir      string
	noSync   bool
	ordered  bool // a sync of a file makes its name durable too
	buffers  sync.Pool
	direct   *directBuffers
	syncs    *syncGroup
	owners   knownOwners
	placing  sync.Mutex                  // where link is not supported
	link     func(from, to string) error // os.Link
	journal  lazyJournal                 // of small objects
	sessions sessions
}

// Open opens the store in the folder dir, and makes it, readable by its owner
// alone, if it is missing.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the files: %w", err)
	}
	s := &Store{dir: dir, noSync: o.NoSync, link: os.Link, syncs: newSyncGroup(syncFolder), direct: newDirectBuffers()}
	s.buffers.New = func() any { b := make([]byte, bufferSize); return &b }
	for _, sub := range []string{s.tmp(), s.folder(blob.Files), s.folder(blob.Backup)} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, fmt.Errorf("opening the files: %w", full(err))
		}
	}
	s.ordered = ordered(dir)
	if err := s.probe(); err != nil {
		return nil, fmt.Errorf("opening the files: %w", full(err))
	}
	// The folder may be new itself. Not everyone may read the one around it.
	_ = s.sync(filepath.Dir(dir))
	return s, s.prepareJournal()
}

// Close ends the use of the store. What was answered is safe without it.
func (s *Store) Close() error {
	var closed error
	s.journal.once.Do(func() {}) // none is opened any more
	if s.journal.j != nil {
		closed = s.journal.j.close()
	}
	return closed
}

// probe finds out now, not at the first upload, that the folder is read-only.
func (s *Store) probe() error {
	f, err := os.CreateTemp(s.tmp(), "probe-")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	return s.sync(s.dir)
}

func (s *Store) tmp() string { return filepath.Join(s.dir, "tmp") }

func (s *Store) folder(area blob.Area) string { return filepath.Join(s.dir, string(area)) }

// path checks area and key: with a good key, no path leads out of the area.
func (s *Store) path(ctx context.Context, area blob.Area, key string) (string, error) {
	if err := blob.CheckKey(key); err != nil {
		return "", err
	}
	if err := checkArea(area); err != nil {
		return "", err
	}
	return filepath.Join(s.folder(area), filepath.FromSlash(key)), ctx.Err()
}

func checkArea(area blob.Area) error {
	if area != blob.Files && area != blob.Backup {
		return fmt.Errorf("disk: %q is no area", area)
	}
	return nil
}

// Open implements blob.Store. The reader is an *os.File.
func (s *Store) Open(ctx context.Context, area blob.Area, key string) (io.ReadSeekCloser, error) {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("opening object %s: %w", key, err)
	}
	return f, nil
}

// Delete implements blob.Store. It does not wait for durable storage: after a
// loss of power the object may be there again.
func (s *Store) Delete(ctx context.Context, area blob.Area, key string) error {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting object %s: %w", key, err)
	}
	return nil
}

// SignGet implements blob.Store: it is not supported.
func (s *Store) SignGet(ctx context.Context, area blob.Area, key string, _ blob.Signed) (string, error) {
	if _, err := s.path(ctx, area, key); err != nil {
		return "", err
	}
	return "", blob.ErrUnsupported
}

// Sweep implements blob.Store. A temporary file counts as begun when it was
// last written to, so that a slow create is not taken for an interrupted one.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	names, err := readNames(s.tmp())
	if err == nil {
		removed, err = s.sweepParts(ctx, before.Add(-blob.PartsLife))
	}
	if err != nil {
		return removed, fmt.Errorf("sweeping: %w", err)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		path := filepath.Join(s.tmp(), name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || !info.ModTime().Before(before)) {
			continue
		}
		if err == nil {
			err = os.Remove(path)
		}
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, fmt.Errorf("sweeping: %w", err)
		}
	}
	return removed, nil
}

// full gives the errors of a medium without room, or none for a file so large,
// the name that callers know.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", blob.ErrFull, err)
	}
	return err
}
