package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"github.com/minio/crc64nvme"

	"ferry/shared/wire"
)

// goldenSum is a case of testdata/checksums.json: Times pieces of the bytes that follow from a seed,
// and behind them one more piece. It is for what computes checksums in other languages, such as
// shared/web/static. UPDATE_GOLDEN=1 writes the file again.
type goldenSum struct {
	Seed   uint32 `json:"seed"`
	Length int64  `json:"length"`
	Times  int64  `json:"times"` // a power of two
	More   int64  `json:"more"`  // bytes of the seed 1
	CRC64  string `json:"crc64nvme"`
	CRC32  uint32 `json:"crc32"`
}

// goldenBytes returns the bytes of a linear congruential generator.
func goldenBytes(seed uint32, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

func (g goldenSum) sums() goldenSum {
	piece := goldenBytes(g.Seed, g.Length)
	wide, narrow, length := crc64nvme.Checksum(piece), crc32.ChecksumIEEE(piece), g.Length
	for times := g.Times; times > 1; times /= 2 {
		wide, narrow, length = wire.CombineCRC64(wide, wide, length), wire.CombineCRC32(narrow, narrow, length), 2*length
	}
	more := goldenBytes(1, g.More)
	wide = wire.CombineCRC64(wide, crc64nvme.Checksum(more), g.More)
	g.CRC32 = wire.CombineCRC32(narrow, crc32.ChecksumIEEE(more), g.More)
	g.CRC64 = wire.CRC64Text(wide)
	return g
}

func TestOtherLanguagesHaveTheSameChecksums(t *testing.T) {
	var all []goldenSum
	for n := range int64(40) {
		all = append(all, goldenSum{Seed: uint32(n), Length: n, Times: 1}.sums())
	}
	for _, n := range []int64{255, 1000, 65_535, 65_536, 1<<20 + 3, 3_000_000} {
		all = append(all, goldenSum{Seed: 7, Length: n, Times: 1}.sums(), goldenSum{Seed: 8, Length: n, Times: 1, More: n / 3}.sums())
	}
	for _, times := range []int64{2, 1 << 10, 1 << 20, 1 << 30, 1 << 35} { // up to 32 PiB
		all = append(all, goldenSum{Seed: 9, Length: 1 << 17, Times: times, More: 5}.sums(), goldenSum{Seed: 10, Length: 1, Times: times}.sums())
	}
	var b bytes.Buffer
	for i, c := range all {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s%s", map[bool]string{true: "[\n", false: ",\n"}[i == 0], text)
	}
	b.WriteString("\n]\n")
	const path = "testdata/checksums.json"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%s has other cases (see git diff after UPDATE_GOLDEN=1), %v", path, err)
	}
}
