package wire_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"
	"testing/iotest"

	"github.com/minio/crc64nvme"

	"ferry/shared/wire"
)

func FuzzCombiningGivesTheChecksumOfTheWhole(f *testing.F) {
	f.Add([]byte("first"), []byte("second"))
	f.Add([]byte{}, []byte("x"))
	f.Add([]byte("x"), []byte{})
	f.Add(bytes.Repeat([]byte("0123456789"), 10_000), make([]byte, 65_537))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		whole, n := append(bytes.Clone(a), b...), int64(len(b))
		wide := wire.CombineCRC64(crc64nvme.Checksum(a), crc64nvme.Checksum(b), n)
		narrow := wire.CombineCRC32(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), n)
		if wide != crc64nvme.Checksum(whole) || narrow != crc32.ChecksumIEEE(whole) {
			t.Errorf("%d and %d bytes: %016x and %08x", len(a), len(b), wide, narrow)
		}
	})
}

func TestCRC64NVMEReadsToTheEnd(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	sum, n, err := wire.CRC64NVME(bytes.NewReader(data))
	if sum != crc64nvme.Checksum(data) || n != int64(len(data)) || err != nil {
		t.Errorf("%016x of %d bytes, %v", sum, n, err)
	}
	cut := errors.New("line cut")
	if _, _, err := wire.CRC64NVME(iotest.ErrReader(cut)); !errors.Is(err, cut) {
		t.Errorf("got error %v, want %v", err, cut)
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
