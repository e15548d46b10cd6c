package blob

import (
	"context"
	"hash"
	"io"

	"github.com/minio/crc64nvme"
)

// Body reads the bytes of an object on their way into a store. It counts them
// and sums them up, and fails when their number is not the announced one, so
// that whoever reads it to the end never takes a wrong upload for a whole one.
// It is for one goroutine at a time.
type Body struct {
	ctx       context.Context
	r         io.Reader
	announced int64 // -1 if unknown
	size      int64
	sum       hash.Hash64
	err       error
}

// NewBody returns the body of a Create or a WritePart, whose reading ends with
// the context. It is for stores.
func NewBody(ctx context.Context, r io.Reader, announced int64) *Body {
	return &Body{ctx: ctx, r: r, announced: announced, sum: crc64nvme.New()}
}

func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.ctx.Err(); b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	b.size += int64(n)
	b.sum.Write(p[:n])
	switch {
	case err != nil && err != io.EOF:
		b.err = err
	case b.announced < 0:
		return n, err
	case b.size > b.announced || err == io.EOF && b.size < b.announced:
		b.err = ErrLength
	default:
		return n, err
	}
	return n, b.err
}

// Fill reads until p is full or the bytes have ended.
func (b *Body) Fill(p []byte) (n int, ended bool, err error) {
	n, err = io.ReadFull(b, p)
	if b.err != nil {
		return n, false, b.err
	}
	return n, err != nil, nil
}

// Err is what reading ended with, if not with the end of the bytes.
func (b *Body) Err() error { return b.err }

// Written describes what was read.
func (b *Body) Written() Written { return Written{Size: b.size, CRC64NVME: b.sum.Sum64()} }
