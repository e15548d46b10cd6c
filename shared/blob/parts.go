package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Limits are a store's bounds of an upload in parts.
type Limits struct {
	MinPart, MaxPart int64 // bytes; the last part may have fewer
	MaxParts         int
}

// The limits of S3.
const (
	MaxParts    = 10_000
	MinPartSize = 5 << 20
	MaxPartSize = 5 << 30
)

// S3Limits returns the limits of S3. A disk has the same, so that clients see no difference.
func S3Limits() Limits { return Limits{MinPartSize, MaxPartSize, MaxParts} }

// MaxLength returns the most bytes of an object in parts.
func (l Limits) MaxLength() int64 { return int64(l.MaxParts) * l.MaxPart }

// PartsLife is how long Sweep leaves an upload alone: by then it must be
// completed or given up.
const PartsLife = 8 * 24 * time.Hour

var (
	// ErrNoUpload is returned for an upload that is unknown, was ended, or has
	// become an object.
	ErrNoUpload = errors.New("blob: no such upload")
	// ErrSuperseded is returned by Upload.Write when another writer of the same
	// part began later.
	ErrSuperseded = errors.New("blob: the part is being sent again")
)

// SumError is returned for bytes whose CRC64NVME is not the stated one.
type SumError struct{ Got, Stated uint64 }

func (e *SumError) Error() string {
	return fmt.Sprintf("blob: the CRC64NVME is %016x, but %016x was stated", e.Got, e.Stated)
}

// MissingError lists the first few parts that are missing or incomplete.
type MissingError struct{ Numbers []int }

func (e *MissingError) Error() string {
	return fmt.Sprintf("blob: parts %v are missing", e.Numbers)
}

// maxMissing bounds the list of a MissingError.
const maxMissing = 10

// Layout says how an object is divided: all parts have PartSize bytes, except the last, which
// has the rest. An empty object has one empty part. While the length is not known yet, it is -1,
// and there may be MaxParts parts of the full size.
type Layout struct {
	Length, PartSize int64
	MaxParts         int
}

// Count returns the number of parts. They are numbered from 1.
func (l Layout) Count() int {
	if l.Length < 0 {
		return l.MaxParts
	}
	return int(max(1, (l.Length+l.PartSize-1)/l.PartSize))
}

// Offset returns where a part begins.
func (l Layout) Offset(number int) int64 { return int64(number-1) * l.PartSize }

// Size returns the number of bytes of a part.
func (l Layout) Size(number int) int64 {
	if l.Length < 0 {
		return l.PartSize
	}
	return min(l.PartSize, l.Length-l.Offset(number))
}

// Check returns an error for a layout beyond a store's limits. MinPart is not checked: a file that
// has only one part may be smaller.
func (l Layout) Check(most Limits) error {
	if l.Length < -1 ||
		l.PartSize < 1 ||
		l.PartSize > most.MaxPart ||
		l.Count() > most.MaxParts {
		return fmt.Errorf("blob: an object of %d bytes cannot have parts of %d bytes",
			l.Length, l.PartSize)
	}
	return nil
}

// CheckNumber returns an error for a part number that the layout does not have.
func (l Layout) CheckNumber(number int) error {
	if number < 1 || number > l.Count() {
		return fmt.Errorf("blob: there is no part %d of %d", number, l.Count())
	}
	return nil
}

// Missing returns a *MissingError unless all parts are there with the right
// sizes, and ErrLength if there are more.
func (l Layout) Missing(parts []Part) error {
	whole := make(map[int]bool, len(parts))
	for _, p := range parts {
		if p.Number > l.Count() {
			return ErrLength
		}
		whole[p.Number] = p.Size == l.Size(p.Number)
	}
	var missing []int
	for n := 1; n <= l.Count() && len(missing) < maxMissing; n++ {
		if !whole[n] {
			missing = append(missing, n)
		}
	}
	if missing != nil {
		return &MissingError{missing}
	}
	return nil
}

// Part is a part that has arrived.
type Part struct {
	Number int
	Size   int64
	Sum    uint64 // CRC64NVME
	HasSum bool   // whether the store knows it
	Tag    string // the store's name for these bytes: S3's ETag
}

// SignedPart is a request with which anyone can send the bytes of a part.
type SignedPart struct {
	Method, URL string
	Header      map[string]string
}

// Parts is the port for objects that arrive in parts: in any order, several at a
// time, over days. All methods, also those of an Upload, are safe for concurrent use.
type Parts interface {
	// Limits returns the bounds of each upload.
	Limits() Limits

	// Begin opens an upload for an object under a key that was never used, and
	// returns the store's name for it.
	Begin(ctx context.Context, area Area, key string, l Layout) (id string, err error)

	// Upload returns the upload that Begin has opened under this name, without a
	// call to the store. The layout may differ in its length, if that was not
	// known. List and Abort need no layout.
	Upload(area Area, key, id string, l Layout) Upload
}

// Upload is an object that arrives in parts. Each method returns an error if the area, key, name
// or layout is wrong. A sum is a CRC64NVME, or nil if it is unknown.
type Upload interface {
	// Sign returns a request that stores one part. The part's size, and its sum
	// if given, are signed and so binding. It makes no call to the store. It
	// returns ErrUnsupported where only this process can take bytes.
	Sign(ctx context.Context, number int, sum *uint64, expires time.Duration) (SignedPart, error)

	// Write stores one part through this process. It replaces an earlier one, which may be lost
	// if this fails. It returns ErrLength if r has more or fewer bytes than the layout says,
	// *SumError if their checksum is not sum, and ErrUnsupported where bytes go to the store
	// directly. Of two writers of the same part, the later wins.
	Write(ctx context.Context, number int, r io.Reader, sum *uint64) (Part, error)

	// List returns all parts that have arrived, by their numbers.
	List(ctx context.Context) ([]Part, error)

	// Complete makes the object from all its parts, complete and durable, or changes nothing: it
	// returns *MissingError if parts are missing or incomplete, ErrLength if there are more than
	// the layout has, and *SumError if the object's checksum is not sum. After success,
	// repeating it gives the same answer while the object is there.
	Complete(ctx context.Context, sum *uint64) (Written, error)

	// Abort ends the upload and removes its parts; if it became an object, that
	// stays. An unknown upload is no error.
	Abort(ctx context.Context) error
}
