package wire_test

import (
	"encoding/json"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/minio/crc64nvme"

	"ferry/shared/boot/expect"
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
		wide, narrow, length = wire.CombineCRC64(
			wide,
			wide,
			length,
		), wire.CombineCRC32(narrow, narrow, length), 2*length
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
		all = append(all, goldenSum{
			Seed:   7,
			Length: n,
			Times:  1,
		}.sums(), goldenSum{Seed: 8, Length: n, Times: 1, More: n / 3}.sums())
	}
	for _, times := range []int64{2, 1 << 10, 1 << 20, 1 << 30, 1 << 35} { // up to 32 PiB
		all = append(all, goldenSum{
			Seed:   9,
			Length: 1 << 17,
			Times:  times,
			More:   5,
		}.sums(), goldenSum{Seed: 10, Length: 1, Times: times}.sums())
	}
	var lines []string
	for _, c := range all {
		text, err := json.Marshal(c)
		expect.NoErr(t, err)
		lines = append(lines, string(text))
	}
	expect.Golden(t, "checksums.json", "[\n"+strings.Join(lines, ",\n")+"\n]\n")
}
