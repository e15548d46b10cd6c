package crc64_test

import (
	"bytes"
	"testing"

	"github.com/minio/crc64nvme"

	"ferry/shared/crc64"
)

func FuzzCombineGivesTheSumOfTheWhole(f *testing.F) {
	f.Add([]byte("first"), []byte("second"))
	f.Add([]byte{}, []byte("x"))
	f.Add([]byte("x"), []byte{})
	f.Add(bytes.Repeat([]byte("0123456789"), 10_000), bytes.Repeat([]byte{0}, 65_537))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		whole := crc64nvme.Checksum(append(bytes.Clone(a), b...))
		got := crc64.Combine(crc64nvme.Checksum(a), crc64nvme.Checksum(b), int64(len(b)))
		if got != whole {
			t.Errorf("%d and %d bytes: %016x, want %016x", len(a), len(b), got, whole)
		}
	})
}

func TestTextIsWhatS3Writes(t *testing.T) {
	t.Parallel()
	// The check value of CRC-64/NVME: the sum of "123456789".
	const want = 0xae8b14860a799888
	if got := crc64nvme.Checksum([]byte("123456789")); got != want {
		t.Fatalf("the check value is %016x", got)
	}
	text := crc64.Text(want)
	if text != "rosUhgp5mIg=" {
		t.Errorf("it is written %s", text)
	}
	if back, err := crc64.Parse(text); back != want || err != nil {
		t.Errorf("it reads %016x, %v", back, err)
	}
	for _, bad := range []string{"", "x", "rosUhgp5mIg", "rosUhgp5mA==", "rosUhgp5mIgA"} {
		if _, err := crc64.Parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
