package disk_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// BenchmarkSmall stores a small object and its record, 16 at once, with the
// object in the table's log or in its own file. See MaxSmall.
func BenchmarkSmall(b *testing.B) {
	for _, size := range []int{1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10} {
		data := bytes.Repeat([]byte("x"), size)
		for _, place := range []string{"log", "file"} {
			b.Run(fmt.Sprintf("%s/%d KiB", place, size>>10), func(b *testing.B) {
				dir := b.TempDir()
				db, err := sqlite.Open(filepath.Join(dir, "table.sqlite"), sqlite.Options{})
				must(b, err)
				defer db.Close()
				s := open(b, dir, disk.Options{})
				create := func(key string) error {
					_, err := s.Create(b.Context(), blob.Files, key, bytes.NewReader(data), int64(size))
					return err
				}
				if place == "log" {
					create = func(key string) error { return db.Blobs().Create(b.Context(), blob.Files, key, data) }
				}
				measure(b, func(n int64) error {
					key := fmt.Sprintf("owner/%d-%s", n, rand.Text())
					if err := create(key); err != nil {
						return err
					}
					return db.Write(b.Context(), table.Put(table.Key{PK: "record", SK: key}, struct{ Blob string }{key}))
				})
			})
		}
	}
}

// BenchmarkReadSmall reads small objects from either place.
func BenchmarkReadSmall(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 10, 32 << 10, 64 << 10} {
		data := bytes.Repeat([]byte("x"), size)
		for _, place := range []string{"log", "file"} {
			b.Run(fmt.Sprintf("%s/%d KiB", place, size>>10), func(b *testing.B) {
				dir := b.TempDir()
				s, small := withTable(b, dir, false)
				must(b, os.MkdirAll(filepath.Join(dir, "files", "owner"), 0o700))
				for i := range 100 {
					key := fmt.Sprintf("owner/%d", i)
					if place == "log" {
						must(b, small.Create(b.Context(), blob.Files, key, data))
					} else if err := os.WriteFile(filepath.Join(dir, "files", key), data, 0o600); err != nil {
						b.Fatal(err)
					}
				}
				measure(b, func(n int64) error {
					r, err := s.Open(b.Context(), blob.Files, fmt.Sprintf("owner/%d", n%100))
					if err != nil {
						return err
					}
					_, err = io.ReadFull(r, make([]byte, size))
					return errors.Join(err, r.Close())
				})
			})
		}
	}
}

// measure makes b.N calls, 16 at once, and reports their CPU time.
func measure(b *testing.B, call func(n int64) error) {
	var n atomic.Int64
	var group errgroup.Group
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.ResetTimer()
	for range 16 {
		group.Go(func() error {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				if err := call(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(b, group.Wait())
	b.StopTimer()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/1e3/float64(b.N), "µs-CPU/op")
}

// BenchmarkLarge compares creating an object of 1 GiB with writing the same bytes
// through a buffer of 256 KiB and syncing once.
func BenchmarkLarge(b *testing.B) {
	const size = 1 << 30
	b.Run("control", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "file")
		b.SetBytes(size)
		for b.Loop() {
			must(b, writeFile(path, io.LimitReader(pattern{}, size), make([]byte, 256<<10)))
			b.StopTimer()
			os.Remove(path)
			b.StartTimer()
		}
	})
	b.Run("create", func(b *testing.B) {
		s := open(b, b.TempDir(), disk.Options{})
		b.SetBytes(size)
		for b.Loop() {
			must(b, second(s.Create(b.Context(), blob.Files, "owner/file", io.LimitReader(pattern{}, size), size)))
			b.StopTimer()
			must(b, s.Delete(b.Context(), blob.Files, "owner/file"))
			b.StartTimer()
		}
	})
}

// BenchmarkMostParts lists and completes a session with MaxParts parts.
func BenchmarkMostParts(b *testing.B) {
	const size = 4096
	l := blob.Layout{Length: blob.MaxParts * size, PartSize: size}
	begin := func(b *testing.B, dir string, n int) blob.Upload {
		s := open(b, dir, disk.Options{NoSync: true})
		key := fmt.Sprintf("owner/%d-a", n)
		id, err := s.Begin(b.Context(), blob.Files, key, l)
		must(b, err)
		u := s.Upload(blob.Files, key, id, l)
		for number := 1; number <= l.Count(); number++ {
			must(b, second(u.Write(b.Context(), number, io.LimitReader(pattern{}, size), nil)))
		}
		return u
	}
	dir := b.TempDir()
	b.Run("list", func(b *testing.B) {
		u := begin(b, dir, 0)
		b.ReportAllocs()
		for b.Loop() {
			if all, err := blob.AllParts(b.Context(), u); err != nil || len(all) != blob.MaxParts {
				b.Fatalf("%d parts, %v", len(all), err)
			}
		}
	})
	b.Run("complete", func(b *testing.B) {
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			b.StopTimer()
			u := begin(b, dir, n)
			b.StartTimer()
			must(b, second(u.Complete(b.Context(), nil)))
		}
	})
}

// BenchmarkParts compares writing 1 GiB in 64 parts, 4 at once, with writing one
// file of 1 GiB through a buffer of 256 KiB and syncing once.
func BenchmarkParts(b *testing.B) {
	l := blob.Layout{Length: 1 << 30, PartSize: 16 << 20}
	b.Run("control", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "file")
		b.SetBytes(l.Length)
		for b.Loop() {
			must(b, writeFile(path, io.LimitReader(pattern{}, l.Length), make([]byte, 256<<10)))
			b.StopTimer()
			os.Remove(path)
			b.StartTimer()
		}
	})
	b.Run("session", func(b *testing.B) {
		s := open(b, b.TempDir(), disk.Options{})
		b.SetBytes(l.Length)
		for b.Loop() {
			id, err := s.Begin(b.Context(), blob.Files, "owner/file", l)
			must(b, err)
			u := s.Upload(blob.Files, "owner/file", id, l)
			var next atomic.Int64
			var group errgroup.Group
			for range 4 {
				group.Go(func() error {
					for number := int(next.Add(1)); number <= l.Count(); number = int(next.Add(1)) {
						if _, err := u.Write(b.Context(), number, io.LimitReader(pattern{}, l.Size(number)), nil); err != nil {
							return err
						}
					}
					return nil
				})
			}
			must(b, group.Wait())
			must(b, second(u.Complete(b.Context(), nil)))
			b.StopTimer()
			must(b, s.Delete(b.Context(), blob.Files, "owner/file"))
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

// pattern is a reader that costs almost nothing.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) { return len(p), nil }
