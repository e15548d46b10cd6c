package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/expect"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// TestRoomLeavesTheReserve compares with a reserve that no disk has.
func TestRoomLeavesTheReserve(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{Reserve: 1 << 60})
	free, err := s.Free()
	room, failed := s.Room()
	if err != nil || failed != nil || free <= 0 || room >= 0 {
		t.Errorf("of %d bytes %d are room, %v, %v", free, room, err, failed)
	}
}

// TestReserveIsLeftFree opens a store that has no room beyond its reserve, and one that has.
func TestReserveIsLeftFree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	free, _, err := disk.Space(dir)
	must(t, err)
	layout := blob.Layout{Length: 10, PartSize: 10}
	roomy, full := open(t, dir, disk.Options{Reserve: 1}), open(t, dir, disk.Options{Reserve: math.MaxInt64})
	create(t, roomy, "ann/1", "content")
	begun, err := roomy.Begin(t.Context(), blob.Files, "ann/2", layout)
	must(t, err)
	put := func(s *disk.Store, size int64) error {
		return second(s.Create(t.Context(), blob.Files, "ann/3", strings.NewReader("content"), size))
	}
	expect.Err(t, "an object announced larger than the disk", put(roomy, free+1<<30), blob.ErrFull)
	for what, err := range map[string]error{
		"an object":                 put(full, 7),
		"an object of unknown size": put(full, -1),
		"a session":                 second(full.Begin(t.Context(), blob.Files, "ann/4", layout)),
		"a part": second(full.Upload(blob.Files, "ann/2", begun, layout).Write(
			t.Context(), 1, strings.NewReader("0123456789"), nil)),
	} {
		if !errors.Is(err, blob.ErrFull) {
			t.Errorf("%s: %v, want ErrFull", what, err)
		}
	}
	if err := full.Copy(t.Context(), blob.Files, "ann/1", blob.Backup, "ann/1"); err != nil {
		t.Errorf("a copy: %v", err)
	}
	failLinks(full, syscall.EPERM)
	if err := full.Copy(t.Context(), blob.Files, "ann/1", blob.Backup, "ann/5"); err != nil {
		t.Errorf("a copy where there are no links: %v", err)
	}
	expect.Equal(t, "left behind", names(t, dir+"/tmp"), nil)
}

// TestFilesAreKeptForADelete opens a store whose file system takes few more files, but has room
// for bytes.
func TestFilesAreKeptForADelete(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{Reserve: 1})
	for i, k := range []struct {
		free, total uint64
		full        bool
	}{{
		free:  1000,
		total: 1e6,
	}, {free: 999, total: 1e6, full: true}, {free: 6, total: 60}, {free: 5, total: 60, full: true}, {}} {
		s.SetInodes(k.free, k.total)
		key := fmt.Sprintf("ann/%d", i)
		_, begun := s.Begin(t.Context(), blob.Files, key+"-parts", blob.Layout{Length: 10, PartSize: 10})
		for what, err := range map[string]error{"an object": putLarge(t, s, key), "a session": begun} {
			if full := errors.Is(err, blob.ErrFull); full != k.full || !full && err != nil {
				t.Errorf("%s with %d of %d files left: %v", what, k.free, k.total, err)
			}
		}
		failLinks(s, syscall.EPERM)
		if err := s.Copy(t.Context(), blob.Files, "ann/0", blob.Backup, key); err != nil {
			t.Errorf("a copy with %d of %d files left: %v", k.free, k.total, err)
		}
	}
}

// putLarge creates an object that becomes a file.
func putLarge(t *testing.T, s *disk.Store, key string) error {
	t.Helper()
	return second(s.Create(t.Context(), blob.Files, key, bytes.NewReader(make([]byte, 100_000)), -1))
}

func second[T any](_ T, err error) error { return err }

// TestOnlyAFailedSyncIsRemembered lets a disk be full for a while, and then fail. The table
// on it learns of that.
func TestOnlyAFailedSyncIsRemembered(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	s := open(t, t.TempDir(), disk.Options{Small: db.Blobs(), Failed: db.Failed()})
	var fails error
	s.SetSync(func(f *os.File) error {
		if fails != nil {
			return &os.PathError{Op: "sync", Path: f.Name(), Err: fails}
		}
		return f.Sync()
	})
	for _, k := range []struct {
		when  string
		fails error
		want  error
	}{
		{when: "while the disk is full", fails: syscall.ENOSPC, want: blob.ErrFull},
		{when: "with room again"},
		{when: "while the disk fails", fails: syscall.EIO, want: syscall.EIO},
		{when: "after it has failed", want: syscall.EIO},
	} {
		fails = k.fails
		expect.Err(t, k.when, putLarge(t, s, "ann/"+strings.ReplaceAll(k.when, " ", "-")), k.want)
		_, small := s.Create(
			t.Context(),
			blob.Files,
			"ann/small-"+strings.ReplaceAll(k.when, " ", "-"),
			strings.NewReader("x"),
			1,
		)
		item := db.Write(t.Context(), table.Put(table.Key{PK: "p", SK: k.when}, struct{}{}))
		for what, err := range map[string]error{"a small object": small, "an item": item} {
			if stops := errors.Is(k.want, syscall.EIO); errors.Is(err, syscall.EIO) != stops || !stops && err != nil {
				t.Errorf("%s, %s: %v", k.when, what, err)
			}
		}
	}
	all, err := s.List(t.Context(), blob.Files, "", 10)
	if err != nil || len(all) != 3 {
		t.Errorf("objects: %v, %v, want three", all, err)
	}
}
