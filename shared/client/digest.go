package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/minio/crc64nvme"
)

// digests compares bytes with what is known of them.
type digests struct {
	sha256, crc string // expected; empty if not known
	sha         hash.Hash
	sum         hash.Hash64
}

func newDigests(sha256sum, crc string) *digests {
	d := &digests{sha256: sha256sum, crc: crc}
	if d.sha256 != "" {
		d.sha = sha256.New()
	}
	if _, ok := ParseCRC(crc); ok {
		d.sum = crc64nvme.New()
	}
	return d
}

// some tells whether there is anything to compare with.
func (d *digests) some() bool { return d.sha != nil || d.sum != nil }

func (d *digests) write(b []byte) {
	if d.sha != nil {
		d.sha.Write(b)
	}
	if d.sum != nil {
		d.sum.Write(b)
	}
}

// check returns an ErrDigest if the bytes are not the expected ones.
func (d *digests) check() error {
	if d.sha != nil {
		if got := hex.EncodeToString(d.sha.Sum(nil)); got != d.sha256 {
			return fmt.Errorf("%w: their SHA-256 is %s, not %s", ErrDigest, got, d.sha256)
		}
	}
	if d.sum != nil {
		if got := FormatCRC(d.sum.Sum64()); got != d.crc {
			return fmt.Errorf("%w: their CRC64NVME is %s, not %s", ErrDigest, got, d.crc)
		}
	}
	return nil
}

// read compares all of r, if there is anything to compare with.
func (d *digests) read(ctx context.Context, r io.Reader) error {
	if !d.some() {
		return nil
	}
	buf := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := r.Read(buf)
		d.write(buf[:n])
		if err == io.EOF {
			return d.check()
		}
		if err != nil {
			return &local{fmt.Errorf("reading what has arrived: %w", err)}
		}
	}
	return context.Cause(ctx)
}

// names are those of the digests that are compared.
func (d *digests) names() []string {
	var all []string
	if d.sha != nil {
		all = append(all, "sha-256")
	}
	if d.sum != nil {
		all = append(all, "crc64nvme")
	}
	return all
}
