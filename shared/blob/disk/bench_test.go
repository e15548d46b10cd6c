package disk_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
)

// BenchmarkSmall compares creates of 4 KiB, 16 at once, with files that are
// made, written, synced and closed and nothing else.
func BenchmarkSmall(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 4096)
	parallel := func(b *testing.B, f func(i int64) error) {
		var n atomic.Int64
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := f(n.Add(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// Rounds alternate and delete nothing: a file system may be slow for a
	// while after many deletes.
	for round := range 3 {
		dir := b.TempDir()
		s := open(b, b.TempDir(), disk.Options{})
		b.Run(fmt.Sprint("control-", round), func(b *testing.B) {
			parallel(b, func(i int64) error {
				path := filepath.Join(dir, fmt.Sprintf("%d-%d", b.N, i))
				return writeFile(path, bytes.NewReader(data), make([]byte, len(data)))
			})
		})
		b.Run(fmt.Sprint("create-", round), func(b *testing.B) {
			parallel(b, func(i int64) error {
				_, err := s.Create(b.Context(), blob.Files, fmt.Sprintf("owner/%d-%d", b.N, i), bytes.NewReader(data), int64(len(data)))
				return err
			})
		})
	}
}

// BenchmarkLarge compares creates of 1 GiB with the same bytes written through
// a buffer of 256 KiB and synced once.
func BenchmarkLarge(b *testing.B) {
	const size = 1 << 30
	b.Run("control", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "file")
		b.SetBytes(size)
		for b.Loop() {
			if err := writeFile(path, io.LimitReader(pattern{}, size), make([]byte, 256<<10)); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			os.Remove(path)
			b.StartTimer()
		}
	})
	b.Run("create", func(b *testing.B) {
		s := open(b, b.TempDir(), disk.Options{})
		b.SetBytes(size)
		for b.Loop() {
			if _, err := s.Create(b.Context(), blob.Files, "owner/file", io.LimitReader(pattern{}, size), size); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := s.Delete(b.Context(), blob.Files, "owner/file"); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

func writeFile(path string, r io.Reader, buf []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{r}, buf); err != nil {
		return err
	}
	return f.Sync()
}

// pattern is a reader that costs next to nothing.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) { return len(p), nil }
