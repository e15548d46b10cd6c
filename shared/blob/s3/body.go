package s3

import (
	"context"
	"hash"
	"io"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"

	"ferry/shared/wire"
)

// body passes on the bytes of an upload while it counts and sums them. It
// fails when their number is not the announced one, so that whoever reads it
// to the end never takes a wrong upload for a whole one.
type body struct {
	ctx       context.Context
	r         io.Reader
	announced int64 // -1 if unknown
	size      int64
	crc       hash.Hash64
	err       error // what reading ended with, if not with the end of the bytes
}

func newBody(ctx context.Context, r io.Reader, announced int64) *body {
	return &body{ctx: ctx, r: r, announced: announced, crc: crc64nvme.New()}
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.ctx.Err(); b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	b.size += int64(n)
	b.crc.Write(p[:n])
	switch {
	case err != nil && err != io.EOF:
		b.err = err
	case b.announced < 0:
		return n, err
	case b.size > b.announced || err == io.EOF && b.size < b.announced:
		b.err = blob.ErrLength
	default:
		return n, err
	}
	return n, b.err
}

func (b *body) written() blob.Written {
	return blob.Written{Size: b.size, CRC64NVME: b.crc.Sum64()}
}

// checksum is the sum of what was read as S3 writes it.
func (b *body) checksum() string {
	return wire.CRC64Text(b.crc.Sum64())
}
