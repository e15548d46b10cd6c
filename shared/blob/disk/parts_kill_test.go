package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/blob/blobtest"
	"ferry/shared/blob/disk"
)

func TestPartsConformanceWithoutLinks(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{})
	failLinks(s, syscall.EPERM)
	blobtest.RunParts(t, func(t *testing.T) blobtest.PartsStore { return s }, blobtest.Flaws{})
}

func writePart(t testing.TB, s *disk.Store, upload string, l blob.Layout, number int, text string) {
	t.Helper()
	must(t, second(s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, number, strings.NewReader(text), nil)))
}

// filled begins a session and writes all its parts.
func filled(t testing.TB, s *disk.Store) (upload string, l blob.Layout) {
	t.Helper()
	upload, l = session(t, s)
	for n, text := range map[int]string{1: "aaaa", 2: "bbbb", 3: "cc"} {
		writePart(t, s, upload, l, n, text)
	}
	return upload, l
}

func wantCompleted(t *testing.T, s *disk.Store, upload string, l blob.Layout, text string) {
	t.Helper()
	want := blob.Written{Size: int64(len(text)), CRC64NVME: crc64nvme.Checksum([]byte(text))}
	for range 2 {
		if got, err := s.CompleteParts(t.Context(), blob.Files, "owner/1-a", upload, l, nil); got != want || err != nil {
			t.Errorf("completing gives %+v and %v, want %+v", got, err, want)
		}
	}
	if got := content(t, s, blob.Files, "owner/1-a"); got != text {
		t.Errorf("the object reads %q, want %q", got, text)
	}
}

func TestCompletePartsFinishesOneThatWasKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upload, l := filled(t, open(t, dir, disk.Options{}))
	data, object := filepath.Join(dir, "parts", upload, "data"), filepath.Join(dir, "files", "owner", "1-a")
	must(t, errors.Join(os.Mkdir(filepath.Dir(object), 0o700), os.Link(data, object)))
	s := open(t, dir, disk.Options{})
	if _, err := s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, 2, strings.NewReader("xxxx"), nil); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("writing a part of a finished object gives %v, want ErrNoUpload", err)
	}
	wantCompleted(t, s, upload, l, "aaaabbbbcc")
	if _, err := os.Lstat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the session kept its data: %v", err)
	}
}

// TestAPartWhoseWriterWasKilledIsMissing because its mark is removed before its
// bytes change, and written when they are all there.
func TestAPartWhoseWriterWasKilledIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	upload, l := filled(t, s)
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	go func() { _, _ = s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, 2, r, nil) }()
	must(t, second(w.Write([]byte("xx")))) // it was read, so the part is being replaced
	again := open(t, dir, disk.Options{})  // as if the first process were gone
	there, err := again.ListParts(t.Context(), blob.Files, "owner/1-a", upload, 0, 10)
	if err != nil || len(there) != 2 || there[0].Number != 1 || there[1].Number != 3 {
		t.Errorf("got the parts %+v, %v; want 1 and 3", there, err)
	}
	_, err = again.CompleteParts(t.Context(), blob.Files, "owner/1-a", upload, l, nil)
	if lost, ok := errors.AsType[*blob.MissingError](err); !ok || len(lost.Numbers) != 1 || lost.Numbers[0] != 2 {
		t.Errorf("completing gives %v, want part 2 missing", err)
	}
	writePart(t, again, upload, l, 2, "BBBB")
	wantCompleted(t, again, upload, l, "aaaaBBBBcc")
}

func TestAHalfMadeSessionIsUnknownAndSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	_, l := session(t, s)
	half := filepath.Join(dir, "parts", "AAAAAAAA")
	must(t, errors.Join(os.Mkdir(half, 0o700), os.WriteFile(filepath.Join(half, "data"), nil, 0o600)))
	if _, err := s.WritePart(t.Context(), blob.Files, "owner/1-a", "AAAAAAAA", l, 1, strings.NewReader("aaaa"), nil); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("writing gives %v", err)
	}
	if _, err := s.ListParts(t.Context(), blob.Files, "owner/1-a", "AAAAAAAA", 0, 10); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("listing gives %v", err)
	}
	then := time.Now().Add(-blob.PartsLife - time.Hour)
	must(t, os.Chtimes(half, then, then))
	if n, err := s.Sweep(t.Context(), time.Now(), nil); n != 1 || err != nil {
		t.Errorf("swept %d, %v; want the half session", n, err)
	}
}

func TestAbortPartsStopsTheWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	upload, l := filled(t, s)
	r, w := io.Pipe()
	writer := make(chan error)
	go func() {
		_, err := s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, 2, r, nil)
		writer <- err
	}()
	must(t, second(w.Write([]byte("xx"))))
	must(t, s.AbortParts(t.Context(), blob.Files, "owner/1-a", upload))
	must(t, second(w.Write([]byte("xx"))))
	w.Close()
	if err := <-writer; !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("the writer ends with %v, want ErrNoUpload", err)
	}
	if left := names(t, filepath.Join(dir, "parts")); len(left) != 0 {
		t.Errorf("the sessions %q are left", left)
	}
}

func TestCompletingCopiesNoBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	upload, l := filled(t, s)
	before, err := os.Stat(filepath.Join(dir, "parts", upload, "data"))
	must(t, err)
	wantCompleted(t, s, upload, l, "aaaabbbbcc")
	after, err := os.Stat(filepath.Join(dir, "files", "owner", "1-a"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the object is not the file that the parts were written to, or error %v", err)
	}
	if left := names(t, filepath.Join(dir, "parts", upload)); strings.Join(left, " ") != "begun marks" {
		t.Errorf("the session still has %q", left)
	}
}

func TestAWrongLayoutIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{})
	upload, _ := filled(t, s)
	for _, l := range []blob.Layout{{Length: 8, PartSize: 4}, {Length: 4, PartSize: 4}} {
		if got, err := s.CompleteParts(t.Context(), blob.Files, "owner/1-a", upload, l, nil); err == nil {
			t.Errorf("completing as %+v gives %+v", l, got)
		}
	}
	if _, err := s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, blob.Layout{Length: 100, PartSize: 4}, 20, strings.NewReader("xxxx"), nil); err == nil {
		t.Error("a part behind the end was accepted")
	}
	wantCompleted(t, s, upload, blob.Layout{Length: 10, PartSize: 4}, "aaaabbbbcc")
}

func TestASessionNameCannotLeadOutOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	create(t, s, "owner/name", "x")
	_, l := session(t, s)
	for _, upload := range []string{"", ".", "..", "../files", "../files/owner", "A/../../files", "A\x00", "lower"} {
		_, write := s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, 1, strings.NewReader("aaaa"), nil)
		_, list := s.ListParts(t.Context(), blob.Files, "owner/1-a", upload, 0, 10)
		_, complete := s.CompleteParts(t.Context(), blob.Files, "owner/1-a", upload, l, nil)
		_, sign := s.SignPart(t.Context(), blob.Files, "owner/1-a", upload, l, 1, nil, time.Minute)
		for what, err := range map[string]error{"writing": write, "listing": list, "completing": complete, "signing": sign} {
			if !errors.Is(err, blob.ErrNoUpload) {
				t.Errorf("%s for %q gives %v, want ErrNoUpload", what, upload, err)
			}
		}
		if err := s.AbortParts(t.Context(), blob.Files, "owner/1-a", upload); err != nil {
			t.Errorf("ending %q gives %v", upload, err)
		}
	}
	if got := content(t, s, blob.Files, "owner/name"); got != "x" {
		t.Errorf("another object reads %q", got)
	}
	if left := names(t, filepath.Join(dir, "parts")); len(left) != 1 {
		t.Errorf("got the sessions %q, want one", left)
	}
}

func TestSessionsArePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	filled(t, s)
	wantPrivate(t, filepath.Join(dir, "parts"))
}

// TestTheLargestObjectBeginsOrIsErrFull allows for file systems that cannot hold
// a file of 48.8 TiB.
func TestTheLargestObjectBeginsOrIsErrFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	l := blob.Layout{Length: blob.MaxParts * blob.MaxPartSize, PartSize: blob.MaxPartSize}
	upload, err := s.BeginParts(t.Context(), blob.Files, "owner/1-a", l)
	if err != nil {
		if left := names(t, filepath.Join(dir, "parts")); !errors.Is(err, blob.ErrFull) || len(left) != 0 {
			t.Errorf("beginning gives %v and leaves %q, want ErrFull and nothing", err, left)
		}
		return
	}
	if _, err := s.ListParts(t.Context(), blob.Files, "owner/1-a", upload, 0, 10); err != nil {
		t.Error(err)
	}
}

// TestAPartNeedsLittleMemory is not parallel: it counts what all goroutines allocate.
func TestAPartNeedsLittleMemory(t *testing.T) {
	s := open(t, t.TempDir(), disk.Options{NoSync: true})
	l := blob.Layout{Length: 64 << 20, PartSize: 64 << 20}
	upload, err := s.BeginParts(t.Context(), blob.Files, "owner/1-a", l)
	must(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, second(s.WritePart(t.Context(), blob.Files, "owner/1-a", upload, l, 1, &zeros{l.Length}, nil)))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1536<<10 {
		t.Errorf("allocated %d bytes, want at most 1.5 MiB", got)
	}
}
