package wire

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/minio/crc64nvme"
)

// The polynomials 0xad93d23594c93659 and 0x04C11DB7 with their bits reflected: the highest bit
// is the lowest power.
const (
	poly64 uint64 = 0x9a6c9329ac4bc9b5
	poly32 uint32 = 0xEDB88320
)

// CRC64NVME reads r to the end and returns the checksum and the number of bytes. It
// returns an error of the reader unchanged.
func CRC64NVME(r io.Reader) (sum uint64, n int64, err error) {
	h := crc64nvme.New()
	n, err = io.Copy(h, r)
	return h.Sum64(), n, err
}

// CombineCRC64 returns the CRC64NVME of two pieces together, from their checksums and the n
// bytes of the second.
func CombineCRC64(first, second uint64, n int64) uint64 {
	return combine(poly64, first, second, n)
}

// CombineCRC32 is CombineCRC64 for the CRC-32 of package hash/crc32, by IEEE 802.3.
func CombineCRC32(first, second uint32, n int64) uint32 {
	return combine(poly32, first, second, n)
}

// combine multiplies the first sum by x to the power of how many bits follow, which takes as long
// for a terabyte as for a few bytes.
func combine[T uint32 | uint64](poly, first, second T, n int64) T {
	product, square := first, (^T(0)>>1+1)>>8 // x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			product = multiply(poly, square, product)
		}
		square = multiply(poly, square, square)
	}
	return product ^ second
}

// multiply multiplies two polynomials modulo that of the checksum.
func multiply[T uint32 | uint64](poly, a, b T) (product T) {
	for bit := ^T(0)>>1 + 1; bit != 0 && a != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
			a ^= bit
		}
		b = b>>1 ^ poly&-(b&1) // reduced if its highest power is left
	}
	return product
}

// CRC64Text returns a checksum as S3 writes it: base64 of its eight bytes, the highest
// first.
func CRC64Text(sum uint64) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, sum))
}

// ParseCRC64 reads a checksum that CRC64Text has written.
func ParseCRC64(text string) (uint64, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 8 || len(text) != base64.StdEncoding.EncodedLen(8) { // with no line breaks
		return 0, fmt.Errorf("%.20q is not a CRC64NVME: base64 of 8 bytes", text)
	}
	return binary.BigEndian.Uint64(b), nil
}
