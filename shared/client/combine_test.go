package client

import (
	"math/rand/v2"
	"testing"

	"github.com/minio/crc64nvme"
)

func TestSumsOfPartsMakeUpTheSumOfTheWhole(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		text := make([]byte, random.IntN(5000))
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		whole, from := crc64nvme.Checksum(nil), 0
		for from < len(text) {
			to := min(len(text), from+1+random.IntN(1500))
			whole = combine(whole, crc64nvme.Checksum(text[from:to]), int64(to-from))
			from = to
		}
		if want := crc64nvme.Checksum(text); whole != want {
			t.Fatalf("%d bytes: %x, want %x", len(text), whole, want)
		}
	}
}
