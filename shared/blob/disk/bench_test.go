package disk_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

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

// BenchmarkMostParts is of a session with as many parts as there can be.
func BenchmarkMostParts(b *testing.B) {
	const size = 4096
	l := blob.Layout{Length: blob.MaxParts * size, PartSize: size}
	begin := func(b *testing.B, dir string, n int) (key, upload string) {
		s := open(b, dir, disk.Options{NoSync: true})
		key = fmt.Sprintf("owner/%d-a", n)
		upload, err := s.BeginParts(b.Context(), blob.Files, key, l)
		if err != nil {
			b.Fatal(err)
		}
		for number := 1; number <= l.Count(); number++ {
			if _, err := s.WritePart(b.Context(), blob.Files, key, upload, l, number, io.LimitReader(pattern{}, size), nil); err != nil {
				b.Fatal(err)
			}
		}
		return key, upload
	}
	dir := b.TempDir()
	s := open(b, dir, disk.Options{})
	b.Run("list", func(b *testing.B) {
		key, upload := begin(b, dir, 0)
		b.ReportAllocs()
		for b.Loop() {
			if all, err := blob.AllParts(b.Context(), s, blob.Files, key, upload); err != nil || len(all) != blob.MaxParts {
				b.Fatalf("%d parts, %v", len(all), err)
			}
		}
	})
	b.Run("complete", func(b *testing.B) {
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			b.StopTimer()
			key, upload := begin(b, dir, n)
			b.StartTimer()
			if _, err := s.CompleteParts(b.Context(), blob.Files, key, upload, l, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkParts sends 1 GiB in 64 parts, 4 at once, beside one file of 1 GiB
// written through a buffer of 256 KiB and synced once.
func BenchmarkParts(b *testing.B) {
	l := blob.Layout{Length: 1 << 30, PartSize: 16 << 20}
	b.Run("control", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "file")
		b.SetBytes(l.Length)
		for b.Loop() {
			if err := writeFile(path, io.LimitReader(pattern{}, l.Length), make([]byte, 256<<10)); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			os.Remove(path)
			b.StartTimer()
		}
	})
	b.Run("session", func(b *testing.B) {
		s := open(b, b.TempDir(), disk.Options{})
		b.SetBytes(l.Length)
		for b.Loop() {
			upload, err := s.BeginParts(b.Context(), blob.Files, "owner/file", l)
			if err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			var group errgroup.Group
			for range 4 {
				group.Go(func() error {
					for number := int(next.Add(1)); number <= l.Count(); number = int(next.Add(1)) {
						if _, err := s.WritePart(b.Context(), blob.Files, "owner/file", upload, l, number, io.LimitReader(pattern{}, l.Size(number)), nil); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				b.Fatal(err)
			}
			if _, err := s.CompleteParts(b.Context(), blob.Files, "owner/file", upload, l, nil); err != nil {
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
