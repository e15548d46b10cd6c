package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/minio/crc64nvme"
)

// ErrTooLong is returned for a body with more bytes than its Left allows.
var ErrTooLong = errors.New("blob: the body is longer than it may be")

// DigestError is returned for a body whose SHA-256 is not the stated one.
type DigestError struct{ Got, Stated []byte }

func (e *DigestError) Error() string {
	return fmt.Sprintf("blob: the SHA-256 is %x, but %x was stated", e.Got, e.Stated)
}

// Body is the one reader of a file's bytes on their way into a store. It counts
// the bytes and computes their checksum. It fails if there are too many, if
// their number is not the announced one or their SHA-256 not the stated one, and
// when the context ends, so a wrong upload never looks complete. It closes
// nothing. It is for one goroutine at a time.
type Body struct {
	R      io.Reader
	Size   int64  // as announced, in bytes; -1 if unknown
	SHA256 []byte // as stated; nil if it need not be computed
	Left   *int64 // bytes that this and other bodies may still bring; nil for no bound

	ctx  context.Context
	size int64
	sum  hash.Hash64
	sha  hash.Hash
	err  error
}

// NewBody returns the body of a Create or an Upload.Write, which is r itself if that
// is a Body. Reading it fails when the context ends. It is for stores.
func NewBody(ctx context.Context, r io.Reader, announced int64) *Body {
	b, ok := r.(*Body)
	if !ok {
		b = &Body{R: r, Size: announced}
	}
	b.ctx = ctx
	return b
}

func (b *Body) Read(p []byte) (int, error) {
	if b.sum == nil {
		b.sum = crc64nvme.New()
		if b.SHA256 != nil {
			b.sha = sha256.New()
		}
	}
	if b.err == nil && b.ctx != nil {
		b.err = b.ctx.Err()
	}
	if b.err != nil {
		return 0, b.err
	}
	if b.Left != nil && int64(len(p)) > *b.Left {
		p = p[:*b.Left+1] // one more byte, to see whether there are too many
	}
	n, err := b.R.Read(p)
	b.size += int64(n)
	b.sum.Write(p[:n])
	if b.sha != nil {
		b.sha.Write(p[:n])
	}
	b.err = b.check(n, err)
	if b.err != nil {
		return n, b.err
	}
	return n, err
}

// check returns what is wrong with the bytes so far. The last read gave n bytes
// and err.
func (b *Body) check(n int, err error) error {
	if b.Left != nil {
		*b.Left -= int64(n)
		if *b.Left < 0 {
			return ErrTooLong
		}
	}
	switch {
	case err != nil && err != io.EOF:
		return err
	case b.Size >= 0 && (b.size > b.Size || err == io.EOF && b.size < b.Size):
		return ErrLength
	case err == io.EOF && b.sha != nil && !bytes.Equal(b.sha.Sum(nil), b.SHA256):
		return &DigestError{b.sha.Sum(nil), b.SHA256}
	}
	return nil
}

// Fill reads until p is full or the bytes end, and returns the filled part of p.
func (b *Body) Fill(p []byte) (filled []byte, ended bool, err error) {
	n, err := io.ReadFull(b, p)
	return p[:n], err != nil && b.err == nil, b.err
}

// Err returns the error that ended reading, or nil; the end of the bytes is no error.
func (b *Body) Err() error { return b.err }

// Written describes the bytes read so far.
func (b *Body) Written() Written {
	if b.sum == nil {
		return Written{}
	}
	return Written{Size: b.size, CRC64NVME: b.sum.Sum64()}
}
