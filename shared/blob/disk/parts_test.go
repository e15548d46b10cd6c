package disk_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/blob/blobtest"
	"ferry/shared/blob/disk"
)

func TestPartsConformance(t *testing.T) {
	t.Parallel()
	t.Run("each test has its own folder", func(t *testing.T) {
		t.Parallel()
		blobtest.RunParts(t, func(t *testing.T) blobtest.PartsStore { return open(t, t.TempDir(), disk.Options{}) }, blobtest.Flaws{})
	})
	t.Run("all tests share one unsynced folder", func(t *testing.T) {
		t.Parallel()
		s := open(t, t.TempDir(), disk.Options{NoSync: true})
		blobtest.RunParts(t, func(t *testing.T) blobtest.PartsStore { return s }, blobtest.Flaws{})
	})
}

// session begins an object of three parts of 4, 4 and 2 bytes.
func session(t testing.TB, s *disk.Store) (upload string, l blob.Layout) {
	t.Helper()
	l = blob.Layout{Length: 10, PartSize: 4}
	upload, err := s.BeginParts(t.Context(), blob.Files, "owner/1-a", l)
	must(t, err)
	return upload, l
}

func TestASessionOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	upload, l := session(t, s)
	for n, text := range map[int]string{1: "aaaa", 3: "cc"} {
		writePart(t, s, upload, l, n, text)
	}
	s = open(t, dir, disk.Options{})
	there, err := s.ListParts(t.Context(), blob.Files, "owner/1-a", upload, 0, 10)
	if err != nil || len(there) != 2 || there[0].Number != 1 || there[1].Number != 3 || there[1].Sum != crc64nvme.Checksum([]byte("cc")) {
		t.Fatalf("got the parts %+v, %v; want 1 and 3", there, err)
	}
	writePart(t, s, upload, l, 2, "bbbb")
	wantCompleted(t, s, upload, l, "aaaabbbbcc")
}

// TestTheLaterWriterOfAPartWins because the earlier may hang on a lost connection.
func TestTheLaterWriterOfAPartWins(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{})
	upload, l := session(t, s)
	r, w := io.Pipe()
	earlier := make(chan error)
	go func() {
		_, err := s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, 1, r, nil)
		earlier <- err
	}()
	must(t, second(w.Write([]byte("xx"))))
	writePart(t, s, upload, l, 1, "aaaa")
	must(t, second(w.Write([]byte("xx"))))
	w.Close()
	if err := <-earlier; !errors.Is(err, blob.ErrSuperseded) {
		t.Errorf("the earlier writer ends with %v, want ErrSuperseded", err)
	}
	for n, text := range map[int]string{2: "bbbb", 3: "cc"} {
		writePart(t, s, upload, l, n, text)
	}
	wantCompleted(t, s, upload, l, "aaaabbbbcc")
}

// TestAHalfWrittenMarkIsIgnored also checks that the session stays usable.
func TestAHalfWrittenMarkIsIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	upload, l := session(t, s)
	for n, text := range map[int]string{1: "aaaa", 2: "bbbb"} {
		writePart(t, s, upload, l, n, text)
	}
	path := filepath.Join(dir, "parts", upload, "marks")
	marks, err := os.ReadFile(path)
	must(t, err)
	copy(marks[20:24], bytes.Repeat([]byte{0}, 4))
	must(t, os.WriteFile(path, marks, 0o600))
	there, err := s.ListParts(t.Context(), blob.Files, "owner/1-a", upload, 0, 10)
	if err != nil || len(there) != 1 || there[0].Number != 2 {
		t.Errorf("got the parts %+v, %v; want 2", there, err)
	}
}

func TestSweepRemovesOldSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	old, _ := session(t, s)
	young, l := session(t, s)
	then := time.Now().Add(-blob.PartsLife - time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "parts", old, "begun"), then, then))
	if n, err := s.Sweep(t.Context(), time.Now().Add(-time.Minute), nil); n != 1 || err != nil {
		t.Errorf("swept %d, %v; want 1", n, err)
	}
	if _, err := s.ListParts(t.Context(), blob.Files, "owner/1-a", young, 0, 10); err != nil {
		t.Errorf("the young session: %v", err)
	}
	if _, err := s.WritePart(t.Context(), blob.Files, "owner/1-a", old, l, 1, strings.NewReader("aaaa"), nil); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("the old session: %v", err)
	}
}
