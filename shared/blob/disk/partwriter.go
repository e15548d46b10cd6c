package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

// A mark says that a part is there. It holds the part's size, its sum, and a sum
// of these two, which reveals a half-written mark. All zeros is no mark.
const markSize = 24

func markAt(number int) int64 { return int64(number-1) * markSize }

func mark(size int64, sum uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(size))
	b = binary.LittleEndian.AppendUint64(b, sum)
	return binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

// Write implements blob.Upload.
func (u upload) Write(
	ctx context.Context,
	number int,
	r io.Reader,
	sum *uint64,
) (blob.Part, error) {
	dir, object, err := u.paths(ctx)
	if err == nil {
		err = u.layout.CheckNumber(number)
	}
	if err != nil {
		return blob.Part{}, err
	}
	shared, release := u.s.use(u.id)
	defer release()
	data, err := openPart(dir, "data")
	if err != nil {
		return blob.Part{}, err
	}
	w := &partWriter{store: u.s, session: shared, layout: u.layout, number: number, data: data}
	defer w.data.Close()
	if w.marks, err = openPart(dir, "marks"); err != nil {
		return blob.Part{}, err
	}
	defer w.marks.Close()
	if same(data, object) { // a Complete was killed after naming the object
		return blob.Part{}, blob.ErrNoUpload
	}
	part, err := w.write(ctx, r, sum)
	return part, wrap(full(err), "writing part %d of object %s", number, u.key)
}

// openPart opens a file of a session.
func openPart(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNoUpload
	}
	return f, err
}

// partWriter writes one part.
type partWriter struct {
	store   *Store
	session *session
	layout  blob.Layout
	number  int
	data    *os.File
	marks   *os.File
}

func (w *partWriter) write(ctx context.Context, r io.Reader, sum *uint64) (blob.Part, error) {
	size := w.layout.Size(w.number)
	err := w.store.room(w.store.reserve, size)
	if err == nil {
		err = w.begin()
	}
	if err != nil {
		return blob.Part{}, err
	}
	defer w.end()
	buf, release := w.store.buffer(size)
	defer release()
	body := blob.NewBody(ctx, r, size)
	for at, ended := w.layout.Offset(w.number), false; !ended; {
		if buf, ended, err = body.Fill(buf); err == nil {
			err = w.put(buf, at)
		}
		if err != nil {
			return blob.Part{}, err
		}
		at += int64(len(buf)) // a full buffer, except for the last
	}
	got := body.Written().CRC64NVME
	if sum != nil && *sum != got {
		return blob.Part{}, &blob.SumError{Got: got, Stated: *sum}
	}
	if err := w.store.sync(w.data); err != nil {
		return blob.Part{}, err
	}
	return blob.Part{Number: w.number, Size: size, Sum: got, HasSum: true}, w.mark(size, got)
}

// begin makes w the part's writer. If the part was there, its mark is durably
// removed, because its bytes are about to change.
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
	if _, err := w.marks.WriteAt(make([]byte, markSize), markAt(w.number)); err != nil {
		return err
	}
	return w.store.sync(w.marks)
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
	if err := w.store.room(w.store.reserve, int64(len(b))); err != nil {
		return err
	}
	_, err := w.data.WriteAt(b, at)
	return err
}

// mark records that the part is there. It need not be durable: without it, the
// part is sent again.
func (w *partWriter) mark(size int64, sum uint64) error {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	if err := w.allowed(); err != nil {
		return err
	}
	_, err := w.marks.WriteAt(mark(size, sum), markAt(w.number))
	return err
}

// readMarks returns the parts that are there.
func readMarks(dir string) (parts []blob.Part, err error) {
	all, err := os.ReadFile(filepath.Join(dir, "marks"))
	if err != nil {
		return nil, err
	}
	for number := 1; len(all) >= markSize; number++ {
		b := all[:markSize]
		all = all[markSize:]
		size, sum := int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])
		if bytes.Equal(b, mark(size, sum)) {
			parts = append(parts, blob.Part{Number: number, Size: size, Sum: sum, HasSum: true})
		}
	}
	return parts, nil
}
