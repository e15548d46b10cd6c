package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/minio/crc64nvme"

	"ferry/shared/wire"
)

func FuzzCombineGivesTheSumOfTheWhole(f *testing.F) {
	f.Add([]byte("first"), []byte("second"))
	f.Add([]byte{}, []byte("x"))
	f.Add([]byte("x"), []byte{})
	f.Add(bytes.Repeat([]byte("0123456789"), 10_000), bytes.Repeat([]byte{0}, 65_537))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		whole := crc64nvme.Checksum(append(bytes.Clone(a), b...))
		got := wire.CombineCRC64(crc64nvme.Checksum(a), crc64nvme.Checksum(b), int64(len(b)))
		if got != whole {
			t.Errorf("%d and %d bytes: %016x, want %016x", len(a), len(b), got, whole)
		}
	})
}

func TestManyPiecesCombineToTheSumOfTheWhole(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	sum := crc64nvme.Checksum(nil)
	for rest := data; len(rest) > 0; {
		n := min(len(rest), random.IntN(5000))
		sum = wire.CombineCRC64(sum, crc64nvme.Checksum(rest[:n]), int64(n))
		rest = rest[n:]
	}
	if want := crc64nvme.Checksum(data); sum != want {
		t.Errorf("the checksum is %016x, want %016x", sum, want)
	}
}

// TestCombineWorksBeyondMemorySize combines the sums of 64 TiB of zeros and of one MiB, in
// both orders. The results must be the same.
func TestCombineWorksBeyondMemorySize(t *testing.T) {
	t.Parallel()
	zeros := crc64nvme.Checksum(make([]byte, 1<<20))
	sum, n := zeros, int64(1<<20)
	for range 26 { // to 64 TiB
		sum, n = wire.CombineCRC64(sum, sum, n), 2*n
	}
	longer := wire.CombineCRC64(sum, zeros, 1<<20)
	if other := wire.CombineCRC64(zeros, sum, n); other != longer {
		t.Errorf("a MiB after %d bytes gives %016x, before them %016x", n, longer, other)
	}
}

func TestCRC64NVMEReadsToTheEnd(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
		if sum, n, err := wire.CRC64NVME(r); sum != crc64nvme.Checksum(data) || n != int64(len(data)) || err != nil {
			t.Errorf("%s: %016x of %d bytes, %v", name, sum, n, err)
		}
	}
	cut := errors.New("line cut")
	if _, _, err := wire.CRC64NVME(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(cut))); !errors.Is(err, cut) {
		t.Errorf("got error %v, want %v", err, cut)
	}
}

// BenchmarkCombineCRC64 combines with a part of 5 GiB.
func BenchmarkCombineCRC64(b *testing.B) {
	sum := uint64(1)
	for b.Loop() {
		sum = wire.CombineCRC64(sum, 0x9a6c9329ac4bc9b5, 5<<30)
	}
}

func TestCRC64TextIsWhatS3Writes(t *testing.T) {
	t.Parallel()
	// The check value of CRC-64/NVME: the sum of "123456789".
	const want = 0xae8b14860a799888
	if got := crc64nvme.Checksum([]byte("123456789")); got != want {
		t.Fatalf("the check value is %016x", got)
	}
	text := wire.CRC64Text(want)
	if text != "rosUhgp5mIg=" {
		t.Errorf("the text is %s", text)
	}
	if back, err := wire.ParseCRC64(text); back != want || err != nil {
		t.Errorf("reading gives %016x, %v", back, err)
	}
	for _, bad := range []string{"", "x", "rosUhgp5mIg", "rosUhgp5mA==", "rosUhgp5mIgA", "rosUhgp5mIg=\n"} {
		if _, err := wire.ParseCRC64(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
