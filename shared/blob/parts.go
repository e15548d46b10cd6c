package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of a session of parts. They are those of S3.
const (
	MaxParts    = 10_000
	MinPartSize = 5 << 20 // but for the last part
	MaxPartSize = 5 << 30
)

// PartsLife is how long a session is left alone by Sweep, and so must be over
// or completed.
const PartsLife = 8 * 24 * time.Hour

var (
	// ErrNoUpload is returned for a session that is not known, was ended, or
	// has become an object.
	ErrNoUpload = errors.New("blob: no such upload")
	// ErrSuperseded is returned by WritePart when another writer of the same
	// part began later.
	ErrSuperseded = errors.New("blob: the part is being sent again")
)

// SumError says that bytes have another CRC64NVME than was stated.
type SumError struct{ Got, Stated uint64 }

func (e *SumError) Error() string {
	return fmt.Sprintf("blob: the bytes have the CRC64NVME %016x, stated was %016x", e.Got, e.Stated)
}

// MissingError says which parts are not there, or not whole: the first few.
type MissingError struct{ Numbers []int }

func (e *MissingError) Error() string { return fmt.Sprintf("blob: parts %v are missing", e.Numbers) }

// maxMissing bounds what a MissingError names.
const maxMissing = 10

// Layout says how an object is cut: all parts have PartSize bytes, but for the
// last, which has what is left. An empty object has one empty part.
type Layout struct{ Length, PartSize int64 }

// Count is the number of parts. They are numbered from 1.
func (l Layout) Count() int { return int(max(1, (l.Length+l.PartSize-1)/l.PartSize)) }

// Offset is where a part begins.
func (l Layout) Offset(number int) int64 { return int64(number-1) * l.PartSize }

// Size is how many bytes a part has.
func (l Layout) Size(number int) int64 { return min(l.PartSize, l.Length-l.Offset(number)) }

// Check returns an error for a layout that no store takes.
func (l Layout) Check() error {
	if l.Length < 0 || l.PartSize < 1 || l.PartSize > MaxPartSize || l.Count() > MaxParts {
		return fmt.Errorf("blob: %d bytes in parts of %d is no layout", l.Length, l.PartSize)
	}
	return nil
}

// CheckNumber returns an error for a part that the layout does not have.
func (l Layout) CheckNumber(number int) error {
	if number < 1 || number > l.Count() {
		return fmt.Errorf("blob: there is no part %d of %d", number, l.Count())
	}
	return nil
}

// Missing returns a *MissingError unless all parts are there, each once, in
// order, and of the right size.
func (l Layout) Missing(parts []Part) error {
	whole := make(map[int]bool, len(parts))
	for _, p := range parts {
		whole[p.Number] = p.Number >= 1 && p.Number <= l.Count() && p.Size == l.Size(p.Number)
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

// Part is one that has arrived.
type Part struct {
	Number int
	Size   int64
	Sum    uint64 // CRC64NVME
	HasSum bool   // whether the store knows it
	Tag    string // the store's own name of these bytes, S3's ETag
}

// SignedPart is a request by which anyone can send the bytes of a part.
type SignedPart struct {
	Method, URL string
	Header      map[string]string
}

// Parts is the port for objects that arrive in parts, in any order, at once,
// over days. All methods are safe for concurrent use. A sum is a CRC64NVME, or
// nil where it is not known.
type Parts interface {
	// BeginParts opens a session for an object under a key that was never
	// used, and returns the store's name for it.
	BeginParts(ctx context.Context, area Area, key string, l Layout) (upload string, err error)

	// SignPart returns a request that stores one part. What it says is
	// signed: the part's size, and its sum if given, are binding. No call to
	// the store. ErrUnsupported where only this process can take bytes.
	SignPart(ctx context.Context, area Area, key, upload string, l Layout, number int, sum *uint64, expires time.Duration) (SignedPart, error)

	// WritePart stores one part through this process. A part that was there
	// before is replaced, or, if this fails, may be missing. ErrLength if r
	// has another number of bytes than the layout says, *SumError if they do
	// not have the sum. Of two writers of one part the later wins.
	// ErrUnsupported where bytes go to the store directly.
	WritePart(ctx context.Context, area Area, key, upload string, l Layout, number int, r io.Reader, sum *uint64) (Part, error)

	// ListParts returns up to limit (1 to MaxList) parts with numbers above
	// after, in order. Fewer than limit means there are no more.
	ListParts(ctx context.Context, area Area, key, upload string, after, limit int) ([]Part, error)

	// CompleteParts makes the object of all its parts, whole and durable, or
	// changes nothing: *MissingError if some are not there or not whole,
	// *SumError if the object would not have the sum. To repeat it after it
	// succeeded gives the same answer as long as the object is there.
	CompleteParts(ctx context.Context, area Area, key, upload string, l Layout, sum *uint64) (Written, error)

	// AbortParts ends a session and removes what it left; an object that it
	// became stays. An unknown one is no error.
	AbortParts(ctx context.Context, area Area, key, upload string) error
}

// AllParts lists the parts of a session, of whatever number.
func AllParts(ctx context.Context, p Parts, area Area, key, upload string) ([]Part, error) {
	var all []Part
	for {
		after := 0
		if len(all) > 0 {
			after = all[len(all)-1].Number
		}
		page, err := p.ListParts(ctx, area, key, upload, after, MaxList)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < MaxList || len(all) >= MaxParts {
			return all, nil
		}
	}
}
