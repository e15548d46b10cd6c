package wire

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/minio/crc64nvme"
)

// poly is the polynomial 0xad93d23594c93659 with its bits reflected: the highest bit
// is the lowest power.
const poly = 0x9a6c9329ac4bc9b5

// CRC64NVME reads r to the end and returns the checksum and the number of bytes. It
// returns an error of the reader unchanged.
func CRC64NVME(r io.Reader) (sum uint64, n int64, err error) {
	h := crc64nvme.New()
	n, err = io.Copy(h, r)
	return h.Sum64(), n, err
}

// CombineCRC64 returns the checksum of two pieces together, from their checksums and the
// n bytes of the second. It multiplies the first sum by x to the power of the bits that
// follow, which takes as long for a terabyte as for a few bytes.
func CombineCRC64(first, second uint64, n int64) uint64 {
	return multiply(power(uint64(n)), first) ^ second
}

// power returns x to the power of 8n, modulo the polynomial.
func power(n uint64) uint64 {
	product := uint64(1) << 63 // 1
	square := uint64(1) << 55  // x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			product = multiply(product, square)
		}
		square = multiply(square, square)
	}
	return product
}

// multiply multiplies two polynomials modulo that of the checksum.
func multiply(a, b uint64) (product uint64) {
	for bit := uint64(1) << 63; bit != 0 && a != 0; bit >>= 1 {
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
