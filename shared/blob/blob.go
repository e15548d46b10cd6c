// Package blob is the port to the bytes of files, which live in two areas, the
// user area and the backup area: each is a bucket in the cloud and a folder on one
// machine. Start reading with Store.
//
// A key has the form "folder/name". Each of the two consists of ASCII letters,
// digits and the characters . _ - @ +, has at most 128 bytes, and does not begin
// with a dot.
//
// All methods of a Store are safe for concurrent use.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Area is one of the two places that keep bytes.
type Area string

// The areas.
const (
	Files  Area = "files"
	Backup Area = "backup"
)

// Areas returns both areas.
func Areas() []Area { return []Area{Files, Backup} }

const (
	// MaxList is the largest limit of a List.
	MaxList = 1000
	// KeptDays is how long a disk keeps what was set aside.
	KeptDays = 7
)

var (
	// ErrNotFound is returned for a missing object.
	ErrNotFound = errors.New("blob: object not found")
	// ErrExists is returned by Create if the key is taken. The existing object
	// stays as it was.
	ErrExists = errors.New("blob: object exists")
	// ErrFull is returned if the medium has no room for the object.
	ErrFull = errors.New("blob: no space left")
	// ErrLength is returned by Create and Upload.Write if the reader gave more or
	// fewer bytes than announced.
	ErrLength = errors.New("blob: length differs from the announced one")
	// ErrUnsupported is returned for what the store cannot do: on a disk there
	// are no signed URLs, and S3 takes parts only by signed URLs.
	ErrUnsupported = errors.New("blob: not supported by this store")
)

// Written describes an object that was just stored.
type Written struct {
	Size int64
	// CRC64NVME is the checksum that S3 computes over a whole object
	// (polynomial 0xad93d23594c93659, reflected, as in the NVMe specification).
	CRC64NVME uint64
}

// Object is an entry of a List.
type Object struct {
	Key  string
	Size int64
	// Modified is when the object appeared; on S3, for one stored in parts,
	// when its upload began.
	Modified time.Time
}

// Signed says how long a signed URL is valid and which headers come with its bytes.
type Signed struct {
	Expires            time.Duration
	ContentType        string
	ContentDisposition string
}

// Store is the port.
type Store interface {
	// Local reports whether the store is on this machine, with no network between. A read that fails
	// there has met damage.
	Local() bool

	// Create stores the bytes of r under a free key; if it is taken, it
	// returns ErrExists. It streams: memory does not grow with the object.
	// After success the object is complete, can be read, and survives the end
	// of the process. It becomes durable no later than the next write to the
	// table beside this store does: a loss of power may lose an object that
	// has no record, but never leaves a record without its object. After an
	// error (which wraps the reader's, if that failed) there is no object, and
	// List shows none. size is the number of bytes that r must give, or -1 if
	// unknown.
	Create(ctx context.Context, area Area, key string, r io.Reader, size int64) (Written, error)

	// Open returns the object's bytes, or ErrNotFound. The reader is for one
	// goroutine; seeking costs nothing until the next Read. On a disk the
	// reader of a large object is an *os.File, so that the kernel can send it.
	// The context bounds all reads. If the object is deleted meanwhile, reads
	// may succeed or fail.
	Open(ctx context.Context, area Area, key string) (io.ReadSeekCloser, error)

	// Copy makes a copy of an object appear in another area, complete or not at
	// all. Where the store can do it, the bytes do not pass through this
	// process. The new key must never have been used, since a taken one may
	// or may not be replaced; but repeating a copy is no error. It returns
	// ErrNotFound if the source is missing. The source stays. The copy is
	// durable when an object made by Create would be.
	Copy(ctx context.Context, from Area, fromKey string, to Area, toKey string) error

	// CopyRange makes an object of n bytes of another object in the same area, from the offset
	// off, unless an earlier call has made it. The bytes do not pass through this process. If a
	// call was interrupted, a repeated one resumes it. It returns ErrNotFound if the source is
	// missing, and ErrUnsupported where only this process can copy a range.
	CopyRange(ctx context.Context, area Area, key string, off, n int64, toKey string) error

	// Delete removes the object; removing a missing one is no error. After a
	// loss of power the object may be there again.
	Delete(ctx context.Context, area Area, key string) error

	// SetAside is Delete for an object that may have been the only copy of its bytes. On
	// a disk the store keeps it, under this day (in UTC), until a Sweep whose time is
	// KeptDays after that day; on S3 the bucket's versions keep it.
	SetAside(ctx context.Context, area Area, key string, day time.Time) error

	// Describe returns the size of an object and the checksum that the store keeps of its bytes.
	// It returns ErrNotFound for a missing object, and ErrUnsupported if the store would have to
	// read the bytes. One call to the store.
	Describe(ctx context.Context, area Area, key string) (Written, error)

	// List returns up to limit (1 to MaxList) objects whose keys sort after
	// the given one, in byte order. Fewer than limit means there are no more.
	List(ctx context.Context, area Area, after string, limit int) ([]Object, error)

	// SignGet returns a URL from which anyone can fetch the object's bytes
	// until it expires, or ErrUnsupported. It does not check that the object
	// exists, and makes no call to the store.
	SignGet(ctx context.Context, area Area, key string, s Signed) (string, error)

	// Sweep removes what interrupted Creates and Copies that began before the given time left
	// behind, which List does not show, and sessions of parts that began PartsLife before that
	// time. If found is not nil, it gets each name, and returns false for what must stay.
	Sweep(ctx context.Context, before time.Time, found func(name string) bool) (removed int, err error)
}

// Mark stands for an object in one state, with one checksum. The zero Mark stands for none.
type Mark [16]byte

// Knower is a Store that knows for some objects that their bytes are right: this process has
// stored them, or read all of them, within 24 hours, and nothing has changed them since. Damage
// by the medium goes unnoticed. Its methods are safe for concurrent use.
type Knower interface {
	// Known returns the mark of an object that Open returned, as it is now, and whether its bytes
	// are known to have this CRC64NVME.
	Known(r io.Reader, sum uint64) (mark Mark, known bool)

	// Know makes the bytes of a mark known. They must have been read, and have had that checksum, while
	// Known returned this mark before and after.
	Know(mark Mark)
}

// Medium tells how full the medium of a Store on this machine is. Its methods are safe for concurrent
// use.
type Medium interface {
	// Free returns how many bytes the medium has left.
	Free() (int64, error)
	// OpenSessions returns how many uploads in parts have begun and neither become objects nor ended.
	OpenSessions() (int, error)
}

// Measure returns the size of an object and, unless only the size is wanted, the checksum of its
// bytes. If the store does not know the checksum, it reads the bytes. It tells read, unless that is
// nil, how many bytes are done.
func Measure(
	ctx context.Context,
	s Store,
	area Area,
	key string,
	sizeOnly bool,
	read func(int64),
) (Written, error) {
	if read == nil {
		read = func(int64) {}
	}
	w, err := s.Describe(ctx, area, key)
	if !errors.Is(err, ErrUnsupported) {
		read(w.Size)
		return w, err
	}
	r, err := s.Open(ctx, area, key)
	if err != nil {
		return Written{}, err
	}
	defer r.Close()
	if sizeOnly {
		if _, err := r.Read(make([]byte, 1)); err != nil && err != io.EOF { // a folder has a size too
			return Written{}, err
		}
		size, err := r.Seek(0, io.SeekEnd)
		read(size)
		return Written{Size: size}, err
	}
	body := NewBody(ctx, r, -1)
	for buf := make([]byte, 256<<10); err == nil; {
		var n int
		n, err = body.Read(buf)
		read(int64(n))
	}
	if err == io.EOF {
		err = nil
	}
	return body.Written(), err
}

// CheckKey returns an error for a key without the form in the package comment.
// Every backend calls it first.
func CheckKey(key string) error {
	folder, name, ok := strings.Cut(key, "/")
	if !ok || !element(folder) || !element(name) {
		return fmt.Errorf("blob: %q is not a key", key)
	}
	return nil
}

const elementBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+"

func element(s string) bool {
	return s != "" && len(s) <= 128 && s[0] != '.' && strings.Trim(s, elementBytes) == ""
}

// CheckLimit returns an error for a limit that a List cannot have.
func CheckLimit(limit int) error {
	if limit < 1 || limit > MaxList {
		return fmt.Errorf("blob: %d objects cannot be listed", limit)
	}
	return nil
}
