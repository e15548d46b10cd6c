package wire_test

import (
	"bytes"
	"hash/crc32"
	"testing"

	"ferry/shared/wire"
)

func FuzzCombiningGivesTheChecksumOfTheWhole(f *testing.F) {
	f.Add([]byte("first"), []byte("second"))
	f.Add([]byte{}, []byte("x"))
	f.Add([]byte("x"), []byte{})
	f.Add(bytes.Repeat([]byte("0123456789"), 10_000), make([]byte, 65_537))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		want := crc32.ChecksumIEEE(append(bytes.Clone(a), b...))
		if got := wire.CombineCRC32(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b))); got != want {
			t.Errorf("%d and %d bytes: %08x, want %08x", len(a), len(b), got, want)
		}
	})
}

// zeros returns the checksum of many zeros, a power of two from 1 MiB.
func zeros(n int64) uint32 {
	sum, length := crc32.ChecksumIEEE(make([]byte, 1<<20)), int64(1<<20)
	for ; length < n; length *= 2 {
		sum = wire.CombineCRC32(sum, sum, length)
	}
	return sum
}

func TestCombiningWorksBeyondMemorySize(t *testing.T) {
	t.Parallel()
	h, mib := crc32.NewIEEE(), make([]byte, 1<<20)
	for range 256 {
		_, _ = h.Write(mib)
	}
	if got := zeros(256 << 20); got != h.Sum32() {
		t.Errorf("256 MiB of zeros have %08x, want %08x", got, h.Sum32())
	}
	// 4 EiB of zeros before and after a piece: together the order of equal bytes does not matter.
	const large = 1 << 62
	short := crc32.ChecksumIEEE(mib)
	if a, b := wire.CombineCRC32(zeros(large), short, 1<<20), wire.CombineCRC32(short, zeros(large), large); a != b {
		t.Errorf("%08x and %08x differ", a, b)
	}
}
