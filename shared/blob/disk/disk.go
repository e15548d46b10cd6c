// Package disk implements blob.Store and blob.Parts with plain files under one
// folder. Start reading with Open; create.go writes objects, and parts.go has the
// sessions of parts.
//
//	files/<key>             the user area; the slash in a key makes a folder
//	backup/<key>            the backup area
//	tmp/                    objects that are being written
//	parts/<session>/        objects that arrive in parts
//	removed/<day>/<area>/   objects that were set aside
//
// Objects of up to MaxSmall bytes go to a Small, if there is one: it writes them
// to the same log as their records, so that one wait for the disk serves both.
// Older small objects may still be files.
//
// Several processes may use a folder. Sweep removes empty folders in an area.
package disk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ferry/shared/blob"
)

// Options change how objects are written. The zero value is the safe choice.
type Options struct {
	// NoSync never waits for durable storage: a loss of power may lose
	// objects whose storing was already confirmed.
	NoSync bool
	// Reserve is how many bytes of the file system stay free for everything but uploads, such as
	// the table: objects and parts that would take them are refused with blob.ErrFull.
	Reserve int64
	// Failed holds the first failed sync of the files, or of others on their disk; after it
	// nothing is written. Nil means that there are no others.
	Failed *atomic.Pointer[error]
	// Now is the clock for how long files are known; nil is time.Now.
	Now func() time.Time
	// Small takes small objects. If it is nil, they become files too.
	Small Small
}

// Small keeps small objects. Its methods do what those of blob.Store do.
type Small interface {
	Create(ctx context.Context, area blob.Area, key string, content []byte) error
	Read(ctx context.Context, area blob.Area, key string) ([]byte, error)
	Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error
	Delete(ctx context.Context, area blob.Area, key string) error
	List(ctx context.Context, area blob.Area, after string, limit int) ([]blob.Object, error)
}

// Store is a blob.Store. Its methods are safe for concurrent use.
type Store struct {
	dir      string
	noSync   bool
	reserve  int64
	small    Small
	now      func() time.Time
	known    known
	buffers  sync.Pool
	making   sync.Mutex                  // of folders
	naming   sync.Mutex                  // of files, where link is not supported
	link     func(from, to string) error // os.Link
	fsync    func(*os.File) error        // (*os.File).Sync
	inodes   func(dir string) (free, total uint64, err error)
	failed   *atomic.Pointer[error]
	using    sync.Mutex          // of sessions
	sessions map[string]*session // in use
}

// Local implements blob.Store.
func (s *Store) Local() bool { return true }

// Open opens the store in the folder dir. If the folder is missing, it is made,
// readable only by its owner.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the files: %w", err)
	}
	s := &Store{
		dir:      dir,
		noSync:   o.NoSync,
		reserve:  o.Reserve,
		small:    cmp.Or[Small](o.Small, none{}),
		link:     os.Link,
		fsync:    (*os.File).Sync,
		failed:   cmp.Or(o.Failed, new(atomic.Pointer[error])),
		inodes:   inodes,
		sessions: map[string]*session{},
		now:      o.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.buffers.New = func() any { b := make([]byte, bufferSize); return &b }
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("opening the files: %w", full(err))
	}
	// The folder itself may be new. Its parent may be unreadable to us.
	_ = s.syncPath(filepath.Dir(dir))
	return s, nil
}

// prepare makes the folders. It fails if they are read-only, so that the first
// upload need not find out.
func (s *Store) prepare() error {
	areas := []string{s.folder(blob.Files), s.folder(blob.Backup)}
	for _, sub := range append(areas, s.tmp()) {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return err
		}
	}
	probe := filepath.Join(s.tmp(), rand.Text())
	if err := errors.Join(os.WriteFile(probe, nil, 0o600), os.Remove(probe)); err != nil {
		return err
	}
	for _, dir := range append(areas, s.dir) {
		if err := s.syncPath(dir); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) tmp() string { return filepath.Join(s.dir, "tmp") }

func (s *Store) folder(area blob.Area) string { return filepath.Join(s.dir, string(area)) }

// path checks area and key: a valid key cannot lead out of the area.
func (s *Store) path(ctx context.Context, area blob.Area, key string) (string, error) {
	path := filepath.Join(s.folder(area), filepath.FromSlash(key))
	return path, cmp.Or(blob.CheckKey(key), checkArea(area), ctx.Err())
}

func checkArea(area blob.Area) error {
	if !slices.Contains(blob.Areas(), area) {
		return fmt.Errorf("disk: unknown area %q", area)
	}
	return nil
}

// Open implements blob.Store.
func (s *Store) Open(
	ctx context.Context,
	area blob.Area,
	key string,
) (io.ReadSeekCloser, error) {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return nil, err
	}
	content, err := s.small.Read(ctx, area, key)
	if err == nil {
		return inMemory{bytes.NewReader(content)}, nil
	}
	if errors.Is(err, blob.ErrNotFound) {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			return f, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	return nil, fmt.Errorf("opening object %s: %w", key, err)
}

// inMemory reads a small object.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// Delete implements blob.Store. It does not wait for durable storage.
func (s *Store) Delete(ctx context.Context, area blob.Area, key string) error {
	path, err := s.path(ctx, area, key)
	if err != nil {
		return err
	}
	if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = s.small.Delete(ctx, area, key)
	}
	return wrap(err, "deleting object %s", key)
}

// CopyRange implements blob.Store: it is not supported.
func (s *Store) CopyRange(
	ctx context.Context,
	area blob.Area,
	key string,
	_, _ int64,
	toKey string,
) error {
	_, err := s.SignGet(ctx, area, key, blob.Signed{})
	return cmp.Or(blob.CheckKey(toKey), err)
}

// Describe implements blob.Store: a disk keeps no checksums.
func (s *Store) Describe(
	ctx context.Context,
	area blob.Area,
	key string,
) (blob.Written, error) {
	_, err := s.path(ctx, area, key)
	return blob.Written{}, cmp.Or(err, blob.ErrUnsupported)
}

// SignGet implements blob.Store: it is not supported.
func (s *Store) SignGet(
	ctx context.Context,
	area blob.Area,
	key string,
	_ blob.Signed,
) (string, error) {
	_, err := s.path(ctx, area, key)
	return "", cmp.Or(err, blob.ErrUnsupported)
}

// Sweep implements blob.Store. A temporary file counts as begun when it was last written to, so
// that a slow create does not look like an interrupted one. Anything whose name this package and
// backups do not make is somebody else's, and stays.
func (s *Store) Sweep(
	ctx context.Context,
	before time.Time,
	found func(name string) bool,
) (removed int, err error) {
	own := func(name string) bool {
		base := path.Base(name)
		return (isRandom(base) || strings.HasPrefix(base, ".copy-")) &&
			(found == nil || found(name))
	}
	sessions, err := sweep(
		ctx,
		s.partsFolder(),
		true,
		before.Add(-blob.PartsLife),
		own,
		s.endSession,
	)
	if err == nil {
		removed, err = sweep(ctx, s.tmp(), false, before, own, os.Remove)
	}
	for _, area := range blob.Areas() {
		if err == nil && found == nil {
			_, err = sweep(
				ctx,
				s.folder(area),
				true,
				before.Add(-blob.PartsLife),
				nil,
				removeEmpty,
			)
		}
	}
	if err == nil && found == nil {
		err = s.dropRemoved(before)
	}
	return sessions + removed, wrap(err, "sweeping")
}

// sweep removes the folders, or only the files, in a folder that began before a time. A session
// is as old as its empty file "begun", which is never written to.
func sweep(
	ctx context.Context, folder string, folders bool, before time.Time,
	found func(name string) bool, remove func(path string) error,
) (removed int, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) { // no session has begun yet
		return 0, nil
	}
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(folder, name)
		info, stat := os.Lstat(path)
		if stat != nil || info.IsDir() != folders {
			continue
		}
		if begun, stat := os.Lstat(filepath.Join(path, "begun")); stat == nil {
			info = begun // without begun, the process was killed while making the session
		}
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		if !info.ModTime().Before(before) ||
			found != nil && !found(filepath.Base(folder)+"/"+name) {
			continue
		}
		if err := remove(path); err == nil {
			removed++
		} else if !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
	}
	return removed, err
}

// isRandom reports whether a name looks like one of rand.Text, as those of temporary files and
// sessions do.
func isRandom(name string) bool {
	return len(name) == 26 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// removeEmpty removes a folder, unless there is something in it.
func removeEmpty(path string) error {
	if err := os.Remove(path); !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}

// Free returns how many bytes the file system has left for this process.
func (s *Store) Free() (int64, error) {
	free, _, err := Space(s.dir)
	return free, err
}

// Room returns how many bytes uploads may still take.
func (s *Store) Room() (int64, error) {
	free, err := s.Free()
	return free - s.reserve, err
}

// room returns blob.ErrFull unless n further bytes leave the reserve free.
func (s *Store) room(reserve, n int64) error {
	if reserve == 0 {
		return nil
	}
	free, err := s.Free()
	if err == nil && free-n < reserve {
		return fmt.Errorf("%w: of %d bytes, %d are kept free", blob.ErrFull, free, reserve)
	}
	return err
}

// keptFiles is how many files the file system must still have room for, or a tenth of all if that
// is fewer: deleting a file may need a folder in the backup area.
const keptFiles = 1000

// roomForFile returns blob.ErrFull unless one more file leaves room for keptFiles. Without a
// reserve of bytes it keeps no room for files either.
func (s *Store) roomForFile(reserve int64) error {
	free, total, err := s.inodes(s.dir)
	if reserve > 0 && free < min(total/10, keptFiles) {
		return fmt.Errorf("%w: the file system takes only %d more files", blob.ErrFull, free)
	}
	return err
}

// full adds blob.ErrFull to the errors that mean that the medium has no room, or
// none for a file that large.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", blob.ErrFull, err)
	}
	return err
}

// wrap says in err what was being done; nil stays nil.
func wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, args...), err)
}

// none stands in for a missing Small.
type none struct{ Small }

func (none) Read(context.Context, blob.Area, string) ([]byte, error) {
	return nil, blob.ErrNotFound
}

func (none) Copy(context.Context, blob.Area, string, blob.Area, string) error {
	return blob.ErrNotFound
}

func (none) Delete(context.Context, blob.Area, string) error { return nil }

func (none) List(context.Context, blob.Area, string, int) ([]blob.Object, error) {
	return nil, nil
}
