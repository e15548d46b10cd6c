package client

// poly is the polynomial of CRC64NVME, with its bits reflected.
const poly = 0x9a6c9329ac4bc9b5

// combine is the CRC64NVME of two stretches, one after the other, of which the
// second has length bytes.
func combine(first, second uint64, length int64) uint64 {
	// Appending a zero bit multiplies by x: x to the power of 8 times length
	// is made by squaring.
	shift, power := uint64(1)<<63, uint64(1)<<55 // 1, and x to the 8th
	for n := length; n > 0; n >>= 1 {
		if n&1 == 1 {
			shift = multiply(shift, power)
		}
		power = multiply(power, power)
	}
	return multiply(shift, first) ^ second
}

// multiply is the product of two polynomials modulo poly.
func multiply(a, b uint64) uint64 {
	var product uint64
	for ; a != 0; a <<= 1 {
		if a>>63 == 1 {
			product ^= b
		}
		if b&1 == 1 {
			b = b>>1 ^ poly
		} else {
			b >>= 1
		}
	}
	return product
}
