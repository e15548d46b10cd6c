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
	"strings"
	"sync"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/crc64"
)

// A session is a folder parts/<upload> with two files that matter. Each part is written to
// its place in "data", which in the end gets the object's name, so that no byte
// is copied. "marks" tells which parts are there: it never says so of one whose
// bytes are not durable.

// session is what the writers of one session share.
type session struct {
	users int // guarded by the map's mutex

	mu      sync.RWMutex // held to read while bytes are written
	sealed  bool         // it is being made an object
	writers map[int]*partWriter
}

// sessions are those in use.
type sessions struct {
	mu   sync.Mutex
	open map[string]*session
}

// use returns a session's state, and what to call when it is no longer used.
func (s *sessions) use(upload string) (*session, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]*session{}
	}
	it, ok := s.open[upload]
	if !ok {
		it = &session{writers: map[int]*partWriter{}}
		s.open[upload] = it
	}
	it.users++
	return it, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if it.users--; it.users == 0 {
			delete(s.open, upload)
		}
	}
}

func (s *Store) partsFolder() string { return filepath.Join(s.dir, "parts") }

// sessionPath checks all names that a path is made of.
func (s *Store) sessionPath(ctx context.Context, area blob.Area, key, upload string) (dir, object string, err error) {
	if object, err = s.path(ctx, area, key); err != nil {
		return "", "", err
	}
	if upload == "" || strings.Trim(upload, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", "", blob.ErrNoUpload
	}
	return filepath.Join(s.partsFolder(), upload), object, nil
}

// BeginParts implements blob.Parts.
func (s *Store) BeginParts(ctx context.Context, area blob.Area, key string, l blob.Layout) (string, error) {
	upload := rand.Text()
	dir, _, err := s.sessionPath(ctx, area, key, upload)
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return "", err
	}
	if err := s.makeSession(dir, l); err != nil {
		return "", fmt.Errorf("beginning object %s: %w", key, errors.Join(full(err), os.RemoveAll(dir)))
	}
	return upload, nil
}

func (s *Store) makeSession(dir string, l blob.Layout) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, size := range map[string]int64{"begun": 0, "data": l.Length, "marks": int64(l.Count()) * markSize} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			return err
		}
	}
	return errors.Join(s.sync(dir), s.sync(s.partsFolder()), s.sync(s.dir))
}

// SignPart implements blob.Parts: it is not supported.
func (s *Store) SignPart(ctx context.Context, area blob.Area, key, upload string, l blob.Layout, number int, _ *uint64, _ time.Duration) (blob.SignedPart, error) {
	if _, _, err := s.sessionPath(ctx, area, key, upload); err != nil {
		return blob.SignedPart{}, err
	}
	if err := l.CheckNumber(number); err != nil {
		return blob.SignedPart{}, err
	}
	return blob.SignedPart{}, blob.ErrUnsupported
}

// WritePart implements blob.Parts.
func (s *Store) WritePart(ctx context.Context, area blob.Area, key, upload string, l blob.Layout, number int, r io.Reader, sum *uint64) (blob.Part, error) {
	dir, _, err := s.sessionPath(ctx, area, key, upload)
	if err == nil {
		err = l.CheckNumber(number)
	}
	if err != nil {
		return blob.Part{}, err
	}
	shared, release := s.sessions.use(upload)
	defer release()
	w := &partWriter{store: s, session: shared, layout: l, number: number}
	if err := w.open(dir); err != nil {
		return blob.Part{}, err
	}
	defer w.close()
	part, err := w.write(ctx, r, sum)
	if err != nil {
		return blob.Part{}, fmt.Errorf("writing part %d of object %s: %w", number, key, full(err))
	}
	return part, nil
}

// partWriter writes one part.
type partWriter struct {
	store       *Store
	session     *session
	layout      blob.Layout
	number      int
	data, marks *os.File
}

func (w *partWriter) open(dir string) (err error) {
	if w.data, err = os.OpenFile(filepath.Join(dir, "data"), os.O_WRONLY, 0); err == nil {
		w.marks, err = os.OpenFile(filepath.Join(dir, "marks"), os.O_RDWR, 0)
	}
	if err != nil {
		w.close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return blob.ErrNoUpload
	}
	return err
}

func (w *partWriter) close() {
	for _, f := range []*os.File{w.data, w.marks} {
		if f != nil {
			f.Close()
		}
	}
}

func (w *partWriter) write(ctx context.Context, r io.Reader, sum *uint64) (blob.Part, error) {
	if err := w.begin(); err != nil {
		return blob.Part{}, err
	}
	defer w.end()
	size := w.layout.Size(w.number)
	buf, release := w.store.buffer(size)
	defer release()
	in := &input{r: r, announced: size, buf: buf, sum: crc64nvme.New()}
	for at := w.layout.Offset(w.number); !in.ended; {
		b, err := in.next(ctx)
		if err != nil {
			return blob.Part{}, err
		}
		if err := w.put(b, at); err != nil {
			return blob.Part{}, err
		}
		at += int64(len(b))
	}
	got := in.sum.Sum64()
	if sum != nil && *sum != got {
		return blob.Part{}, &blob.SumError{Got: got, Stated: *sum}
	}
	if !w.store.noSync {
		if err := syncData(w.data); err != nil {
			return blob.Part{}, err
		}
	}
	return partOf(w.number, size, got), w.mark(size, got)
}

// begin makes this the part's writer, and the part missing: durably so if it
// was there, as its bytes will soon be others.
func (w *partWriter) begin() error {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	if w.session.sealed {
		return blob.ErrNoUpload
	}
	w.session.writers[w.number] = w
	var old [markSize]byte
	if _, err := w.marks.ReadAt(old[:], markAt(w.number)); err != nil {
		return err
	}
	if old == [markSize]byte{} {
		return nil
	}
	if _, err := w.marks.WriteAt(make([]byte, markSize), markAt(w.number)); err != nil || w.store.noSync {
		return err
	}
	return syncData(w.marks)
}

func (w *partWriter) end() {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	if w.session.writers[w.number] == w {
		delete(w.session.writers, w.number)
	}
}

// allowed must be called with the session locked.
func (w *partWriter) allowed() error {
	switch {
	case w.session.sealed:
		return blob.ErrNoUpload
	case w.session.writers[w.number] != w:
		return blob.ErrSuperseded
	}
	return nil
}

func (w *partWriter) put(b []byte, at int64) error {
	w.session.mu.RLock()
	defer w.session.mu.RUnlock()
	if err := w.allowed(); err != nil {
		return err
	}
	_, err := w.data.WriteAt(b, at)
	return err
}

// mark says that the part is there. It need not be durable: without it, the
// part is sent once more.
func (w *partWriter) mark(size int64, sum uint64) error {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	if err := w.allowed(); err != nil {
		return err
	}
	_, err := w.marks.WriteAt(mark(size, sum), markAt(w.number))
	return err
}

// ListParts implements blob.Parts.
func (s *Store) ListParts(ctx context.Context, area blob.Area, key, upload string, after, limit int) ([]blob.Part, error) {
	dir, _, err := s.sessionPath(ctx, area, key, upload)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > blob.MaxList || after < 0 {
		return nil, fmt.Errorf("disk: %d parts after %d cannot be listed", limit, after)
	}
	parts, err := readMarks(dir, after, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNoUpload
	}
	if err == nil && !exists(filepath.Join(dir, "data")) {
		return nil, blob.ErrNoUpload
	}
	if err != nil {
		return nil, fmt.Errorf("listing the parts of object %s: %w", key, err)
	}
	return parts, nil
}

func exists(path string) bool { return !missing(path) }

// CompleteParts implements blob.Parts.
func (s *Store) CompleteParts(ctx context.Context, area blob.Area, key, upload string, l blob.Layout, sum *uint64) (blob.Written, error) {
	dir, object, err := s.sessionPath(ctx, area, key, upload)
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return blob.Written{}, err
	}
	shared, release := s.sessions.use(upload)
	defer release()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	written, err := s.complete(dir, object, l, sum)
	switch {
	case err == nil:
		shared.sealed = true // to those who are still writing
	case errors.Is(err, fs.ErrNotExist):
		return blob.Written{}, blob.ErrNoUpload
	default:
		return blob.Written{}, fmt.Errorf("completing object %s: %w", key, full(err))
	}
	return written, nil
}

// complete gives the data the object's name. When it is done the marks stay, so
// that the answer can be given again.
func (s *Store) complete(dir, object string, l blob.Layout, sum *uint64) (blob.Written, error) {
	parts, err := readMarks(dir, 0, l.Count())
	if err != nil {
		return blob.Written{}, err
	}
	if err := l.Missing(parts); err != nil {
		return blob.Written{}, err
	}
	written := blob.Written{Size: l.Length, CRC64NVME: combine(parts)}
	if sum != nil && *sum != written.CRC64NVME {
		return blob.Written{}, &blob.SumError{Got: written.CRC64NVME, Stated: *sum}
	}
	data := filepath.Join(dir, "data")
	f, err := os.OpenFile(data, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) && exists(object) { // it was completed before
		return written, nil
	}
	if err != nil {
		return blob.Written{}, err
	}
	defer f.Close()
	now := time.Now() // from which on it counts as an object
	if err := os.Chtimes(data, now, now); err != nil {
		return blob.Written{}, err
	}
	if err := s.place(f, object); err != nil && !(errors.Is(err, blob.ErrExists) && same(f, object)) {
		return blob.Written{}, err
	}
	if err := os.Remove(data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blob.Written{}, err
	}
	return written, nil
}

// same reports whether an earlier try gave the file its name already.
func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func combine(parts []blob.Part) uint64 {
	sum := parts[0].Sum
	for _, p := range parts[1:] {
		sum = crc64.Combine(sum, p.Sum, p.Size)
	}
	return sum
}

// AbortParts implements blob.Parts.
func (s *Store) AbortParts(ctx context.Context, area blob.Area, key, upload string) error {
	dir, _, err := s.sessionPath(ctx, area, key, upload)
	if errors.Is(err, blob.ErrNoUpload) {
		return nil
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("ending the upload of object %s: %w", key, err)
	}
	return nil
}

// sweepParts removes sessions that began before a time: that of an empty file
// which is never written to.
func (s *Store) sweepParts(ctx context.Context, before time.Time) (removed int, err error) {
	names, err := readNames(s.partsFolder())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, name := range names {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return removed, err
		}
		dir := filepath.Join(s.partsFolder(), name)
		info, stat := os.Lstat(filepath.Join(dir, "begun"))
		if errors.Is(stat, fs.ErrNotExist) { // it was killed in the making
			info, stat = os.Lstat(dir)
		}
		if stat != nil || !info.ModTime().Before(before) {
			continue
		}
		if err = os.RemoveAll(dir); err == nil {
			removed++
		}
	}
	return removed, err
}
