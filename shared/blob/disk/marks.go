package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

// A mark says that a part is there: its size, its sum, and a sum of these two,
// by which one that was cut off in the writing is told. All zeros is no mark.
const markSize = 24

func markAt(number int) int64 { return int64(number-1) * markSize }

func mark(size int64, sum uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(size))
	b = binary.LittleEndian.AppendUint64(b, sum)
	return binary.LittleEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

func partOf(number int, size int64, sum uint64) blob.Part {
	return blob.Part{Number: number, Size: size, Sum: sum, HasSum: true}
}

// readMarks returns up to limit parts with numbers above after.
func readMarks(dir string, after, limit int) (parts []blob.Part, err error) {
	f, err := os.Open(filepath.Join(dir, "marks"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make([]byte, (blob.MaxParts-min(after, blob.MaxParts))*markSize)
	n, err := f.ReadAt(all, markAt(after+1))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for number := after + 1; n >= markSize && len(parts) < limit; number++ {
		b := all[:markSize]
		all, n = all[markSize:], n-markSize
		size, sum := int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])
		if bytes.Equal(b, mark(size, sum)) {
			parts = append(parts, partOf(number, size, sum))
		}
	}
	return parts, nil
}

// keepMarks makes the marks durable.
func (s *Store) keepMarks(dir string) error {
	f, err := openPart(dir, "marks")
	if err != nil {
		return err
	}
	return errors.Join(s.sync(f), f.Close())
}
