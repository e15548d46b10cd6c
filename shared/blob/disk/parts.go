package disk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/wire"
)

// An upload is a folder parts/<id>. Each part is written to its place in
// the file "data", which in the end gets the object's name, so no bytes are
// copied. "marks" says which parts are there: it never lists one whose bytes are
// not durable. "begun" is as old as the upload.

// upload is a handle for an upload. It implements blob.Upload.
type upload struct {
	s      *Store
	area   blob.Area
	key    string
	id     string
	layout blob.Layout
}

// Upload implements blob.Parts.
func (s *Store) Upload(area blob.Area, key, id string, l blob.Layout) blob.Upload {
	return upload{s, area, key, id, l}
}

// session is what the writers of one upload share.
type session struct {
	users int // guarded by the store's using

	mu      sync.RWMutex // read-locked while bytes are written
	sealed  bool         // it has become an object, or was ended
	writers map[int]*partWriter
}

// use returns an upload's session, and a function to call after its use.
func (s *Store) use(id string) (*session, func()) {
	s.using.Lock()
	defer s.using.Unlock()
	shared, ok := s.sessions[id]
	if !ok {
		shared = &session{writers: map[int]*partWriter{}}
		s.sessions[id] = shared
	}
	shared.users++
	return shared, func() {
		s.using.Lock()
		defer s.using.Unlock()
		if shared.users--; shared.users == 0 {
			delete(s.sessions, id)
		}
	}
}

func (s *Store) partsFolder() string { return filepath.Join(s.dir, "parts") }

// paths returns the paths of an upload's folder and of its object. It checks the names that they
// are made of.
func (u upload) paths(ctx context.Context) (dir, object string, err error) {
	object, err = u.s.path(ctx, u.area, u.key)
	if err == nil && !isRandom(u.id) {
		err = blob.ErrNoUpload
	}
	return filepath.Join(u.s.partsFolder(), u.id), object, err
}

// Begin implements blob.Parts.
func (s *Store) Begin(
	ctx context.Context,
	area blob.Area,
	key string,
	l blob.Layout,
) (string, error) {
	id := rand.Text()
	dir, _, err := upload{s, area, key, id, l}.paths(ctx)
	if err == nil {
		err = l.Check(s.Limits())
	}
	if err == nil {
		err = s.room(s.reserve, l.Length)
	}
	if err == nil {
		err = s.roomForFile(s.reserve)
	}
	if err != nil {
		return "", err
	}
	if err := s.makeSession(dir, l); err != nil {
		return "", fmt.Errorf("beginning object %s: %w",
			key, errors.Join(full(err), os.RemoveAll(dir)))
	}
	return id, nil
}

func (s *Store) makeSession(dir string, l blob.Layout) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, size := range map[string]int64{
		"begun": 0,
		"data":  max(l.Length, 0),
		"marks": int64(l.Count()) * markSize,
	} {
		f, err := os.OpenFile(
			filepath.Join(dir, name),
			os.O_WRONLY|os.O_CREATE|os.O_EXCL,
			0o600,
		)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			return err
		}
	}
	return errors.Join(s.syncPath(dir), s.syncPath(s.partsFolder()), s.syncPath(s.dir))
}

// Sign implements blob.Upload: it is not supported.
func (u upload) Sign(
	ctx context.Context,
	number int,
	_ *uint64,
	_ time.Duration,
) (blob.SignedPart, error) {
	_, _, err := u.paths(ctx)
	wrong := u.layout.CheckNumber(number)
	return blob.SignedPart{}, cmp.Or(err, wrong, blob.ErrUnsupported)
}

// Limits implements blob.Parts.
func (s *Store) Limits() blob.Limits { return blob.S3Limits() }

// OpenSessions implements blob.Medium. A session that is neither completed nor swept counts.
func (s *Store) OpenSessions() (int, error) {
	open, err := fs.Glob(os.DirFS(s.partsFolder()), "*/data")
	return len(open), err
}

// List implements blob.Upload.
func (u upload) List(ctx context.Context) ([]blob.Part, error) {
	dir, _, err := u.paths(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := readMarks(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && missing(filepath.Join(dir, "data")) {
		return nil, blob.ErrNoUpload
	}
	return parts, wrap(err, "listing the parts of object %s", u.key)
}

// Complete implements blob.Upload.
func (u upload) Complete(ctx context.Context, sum *uint64) (blob.Written, error) {
	dir, object, err := u.paths(ctx)
	if err == nil {
		err = u.layout.Check(u.s.Limits())
	}
	if err != nil {
		return blob.Written{}, err
	}
	shared, release := u.s.use(u.id)
	defer release()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	written, err := u.s.complete(dir, object, u.layout, sum)
	if errors.Is(err, fs.ErrNotExist) {
		return blob.Written{}, blob.ErrNoUpload
	}
	if err != nil {
		return blob.Written{}, fmt.Errorf("completing object %s: %w", u.key, full(err))
	}
	shared.sealed = true // stops those who are still writing
	return written, nil
}

// complete gives the data the object's name. The marks stay, so that a
// repetition gets the same answer.
func (s *Store) complete(dir, object string, l blob.Layout, sum *uint64) (blob.Written, error) {
	parts, err := readMarks(dir)
	if err != nil {
		return blob.Written{}, err
	}
	if err := l.Missing(parts); err != nil {
		return blob.Written{}, err
	}
	var whole uint64
	for _, p := range parts {
		whole = wire.CombineCRC64(whole, p.Sum, p.Size)
	}
	if sum != nil && *sum != whole {
		return blob.Written{}, &blob.SumError{Got: whole, Stated: *sum}
	}
	return blob.Written{Size: l.Length, CRC64NVME: whole}, s.nameData(dir, object, l)
}

// nameData also finishes an earlier try, which may have been killed before the
// name was durable. It makes the marks durable too: without them a repetition
// could not be answered.
func (s *Store) nameData(dir, object string, l blob.Layout) error {
	data := filepath.Join(dir, "data")
	f, err := os.OpenFile(data, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return s.keep(object)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < l.Length {
		return errors.Join(err, fmt.Errorf("the session does not have %d bytes", l.Length))
	}
	// The last part was longer at first if the length was not known.
	err = errors.Join(f.Truncate(l.Length), s.syncPath(filepath.Join(dir, "marks")))
	if err == nil {
		err = s.finish(f, object)
	}
	if errors.Is(err, blob.ErrExists) && same(f, object) {
		err = s.keep(object)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(data)
}

// keep makes the name of an object durable. Its bytes already are.
func (s *Store) keep(object string) error {
	if _, err := os.Lstat(object); err != nil {
		return err
	}
	return s.syncPath(filepath.Dir(object))
}

// same reports whether an earlier try has already given the file this name.
func same(f *os.File, path string) bool {
	a, err := f.Stat()
	b, pathErr := os.Stat(path)
	return err == nil && pathErr == nil && os.SameFile(a, b)
}

// Abort implements blob.Upload.
func (u upload) Abort(ctx context.Context) error {
	dir, _, err := u.paths(ctx)
	if errors.Is(err, blob.ErrNoUpload) {
		return nil
	}
	if err == nil {
		err = u.s.endSession(dir)
	}
	return wrap(err, "ending the upload of object %s", u.key)
}

// endSession removes an upload and makes its writers fail.
func (s *Store) endSession(dir string) error {
	shared, release := s.use(filepath.Base(dir))
	defer release()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.sealed = true
	return os.RemoveAll(dir)
}
