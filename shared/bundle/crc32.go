package bundle

// poly is the polynomial of CRC-32, 0x04C11DB7, with its bits reflected: the highest bit is the
// lowest power.
const poly = 0xEDB88320

// CombineCRC32 returns the checksum of two pieces together, from their checksums and the n bytes
// of the second. It takes as long for a terabyte as for a few bytes.
//
// It multiplies the first sum by x to the power of the bits that follow.
func CombineCRC32(first, second uint32, n int64) uint32 {
	product, square := first, uint32(1)<<23 // x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			product = multiply(product, square)
		}
		square = multiply(square, square)
	}
	return product ^ second
}

// multiply multiplies two polynomials modulo that of the checksum.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0 && a != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
			a ^= bit
		}
		b = b>>1 ^ poly&-(b&1) // reduced if its highest power is left
	}
	return product
}
