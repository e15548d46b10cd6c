// Package blob is the port to the bytes of files. They live in two areas, the
// user area and the backup area, each a bucket in the cloud and a folder on a
// single machine.
//
// A key is two elements, "owner/name", each of letters, digits and the
// characters . _ - @ +, not starting with a dot, at most 128 bytes each.
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

// Area is one of the two places that bytes are kept in.
type Area string

// The areas.
const (
	Files  Area = "files"
	Backup Area = "backup"
)

// MaxList is the largest limit of a List.
const MaxList = 1000

var (
	// ErrNotFound is returned for an object that is not there.
	ErrNotFound = errors.New("blob: object not found")
	// ErrExists is returned by Create for a key that is taken. The object
	// there stays as it was.
	ErrExists = errors.New("blob: object exists")
	// ErrFull is returned when the medium has no room for the object.
	ErrFull = errors.New("blob: no space left")
	// ErrLength is returned by Create when the reader gave another number of
	// bytes than was announced.
	ErrLength = errors.New("blob: length differs from the announced one")
	// ErrUnsupported is returned by SignGet where there is nobody but this
	// process to hand out the bytes.
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

// Signed says how bytes fetched by a signed URL are to be labelled.
type Signed struct {
	Expires            time.Duration
	ContentType        string
	ContentDisposition string
}

// Store is the port.
type Store interface {
	// Create stores the bytes of r under a key that is free, else ErrExists.
	// It streams: memory does not grow with the object. When it returns nil
	// the object is complete, can be read, and survives the end of the
	// process. It is durable at the latest when a later write to the table
	// beside this store is: a loss of power may take away an object of which
	// no record tells, but never leaves a record without its object. When it
	// returns an error (also the reader's own, which it wraps) there is no
	// object, and nothing to see in List. size is the number of bytes that r
	// must give, or -1 if unknown.
	Create(ctx context.Context, area Area, key string, r io.Reader, size int64) (Written, error)

	// Open returns the object's bytes, or ErrNotFound. The reader is for one
	// goroutine; seeking costs nothing until the next Read. On a disk that of
	// a large object is an *os.File, so that the kernel can send it. The
	// context bounds all reads. An object deleted while open may go on
	// reading or fail.
	Open(ctx context.Context, area Area, key string) (io.ReadSeekCloser, error)

	// Copy makes the bytes of one object appear as another, in another area,
	// whole or not at all, without passing them through this process where
	// the store can do that. The new key must be one that was never used, as
	// it is left open whether a taken one is replaced; but to repeat a copy
	// is no error. ErrNotFound if the first object is missing. The first
	// object stays. The new one is durable when one of Create would be.
	Copy(ctx context.Context, from Area, fromKey string, to Area, toKey string) error

	// Delete removes the object; removing a missing one is no error. After a
	// loss of power it may be there again.
	Delete(ctx context.Context, area Area, key string) error

	// List returns up to limit (1 to MaxList) objects whose keys sort after
	// the given one, in the order of the bytes of their keys. Fewer than
	// limit means there are no more.
	List(ctx context.Context, area Area, after string, limit int) ([]Object, error)

	// SignGet returns a URL from which anyone can fetch the object's bytes
	// until it expires, or ErrUnsupported. It does not check that the object
	// exists, and makes no call to the store.
	SignGet(ctx context.Context, area Area, key string, s Signed) (string, error)

	// Sweep removes what interrupted Creates and Copies left behind and that
	// no List shows, if it began before the given time, and sessions of
	// parts that began PartsLife before that.
	Sweep(ctx context.Context, before time.Time) (removed int, err error)
}

// CheckKey returns an error for a key that is not of the form the package
// comment states. Every backend calls it first.
func CheckKey(key string) error {
	owner, name, ok := strings.Cut(key, "/")
	if !ok || !element(owner) || !element(name) {
		return fmt.Errorf("blob: %q is not a key", key)
	}
	return nil
}

func element(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-@+", c) >= 0) {
			return false
		}
	}
	return true
}
