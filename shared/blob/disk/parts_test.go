package disk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/expect"
)

// layout is that of an upload's three parts.
var layout = blob.Layout{Length: 10, PartSize: 4}

// upload is one of the object owner/1-a.
type upload struct {
	testing.TB
	blob.Upload
	dir, id string
}

func begin(t testing.TB, dir string, s *disk.Store) upload {
	t.Helper()
	id, err := s.Begin(t.Context(), blob.Files, "owner/1-a", layout)
	must(t, err)
	return upload{t, s.Upload(blob.Files, "owner/1-a", id, layout), dir, id}
}

// filled begins an upload and writes all its parts.
func filled(t testing.TB, dir string) (upload, *disk.Store) {
	t.Helper()
	s := open(t, dir, disk.Options{})
	u := begin(t, dir, s)
	u.put(1, "aaaa")
	u.put(2, "bbbb")
	u.put(3, "cc")
	return u, s
}

// restarted returns the upload in another process.
func (u upload) restarted() upload {
	u.Helper()
	u.Upload = open(u, u.dir, disk.Options{}).Upload(blob.Files, "owner/1-a", u.id, layout)
	return u
}

func (u upload) put(number int, text string) {
	u.Helper()
	must(u, second(u.Write(u.Context(), number, strings.NewReader(text), nil)))
}

// folder returns the path of a file in the upload's folder.
func (u upload) folder(name string) string { return filepath.Join(u.dir, "parts", u.id, name) }

// wantParts checks the numbers of the parts that are there.
func (u upload) wantParts(want string) {
	u.Helper()
	var numbers []int
	there, err := u.List(u.Context())
	for _, p := range there {
		numbers = append(numbers, p.Number)
	}
	expect.Equal(u, "the parts", fmt.Sprint(numbers, err), want+" <nil>")
}

func (u upload) wantCompleted(text string) {
	u.Helper()
	want := blob.Written{Size: int64(len(text)), CRC64NVME: crc64nvme.Checksum([]byte(text))}
	for range 2 {
		if got, err := u.Complete(u.Context(), nil); got != want || err != nil {
			u.Errorf("completing gives %+v and %v, want %+v", got, err, want)
		}
	}
	expect.Equal(u, "the object", content(u, open(u, u.dir, disk.Options{}), blob.Files, "owner/1-a"), text)
}

// writing begins to write part 2 and returns when half of it was read. finish sends the rest, and
// returns the writer's error.
func (u upload) writing() (finish func() error) {
	u.Helper()
	r, w := io.Pipe()
	u.Cleanup(func() { w.Close() })
	ended := make(chan error, 1)
	go func() { ended <- second(u.Write(u.Context(), 2, r, nil)) }()
	must(u, second(w.Write([]byte("xx"))))
	return func() error {
		must(u, second(w.Write([]byte("xx"))))
		w.Close()
		return <-ended
	}
}

func TestAnUploadOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := begin(t, dir, open(t, dir, disk.Options{}))
	u.put(1, "aaaa")
	u.put(3, "cc")
	u = u.restarted()
	u.wantParts("[1 3]")
	u.put(2, "bbbb")
	u.wantCompleted("aaaabbbbcc")
}

// TestTheLaterWriterOfAPartWins because the earlier may hang on a lost connection.
func TestTheLaterWriterOfAPartWins(t *testing.T) {
	t.Parallel()
	u, _ := filled(t, t.TempDir())
	finish := u.writing()
	u.put(2, "BBBB")
	expect.Err(t, "the earlier writer", finish(), blob.ErrSuperseded)
	u.wantCompleted("aaaaBBBBcc")
}

func TestAbortStopsTheWriters(t *testing.T) {
	t.Parallel()
	u, _ := filled(t, t.TempDir())
	finish := u.writing()
	must(t, u.Abort(t.Context()))
	expect.Err(t, "the writer", finish(), blob.ErrNoUpload)
	expect.Equal(t, "the uploads", names(t, filepath.Join(u.dir, "parts")), nil)
}

// TestAPartWhoseWriterWasKilledIsMissing because its mark is removed before its
// bytes change, and written when they are all there.
func TestAPartWhoseWriterWasKilledIsMissing(t *testing.T) {
	t.Parallel()
	u, _ := filled(t, t.TempDir())
	u.writing()
	u = u.restarted() // as if the first process were gone
	u.wantParts("[1 3]")
	_, err := u.Complete(t.Context(), nil)
	if lost, ok := errors.AsType[*blob.MissingError](err); !ok || fmt.Sprint(lost.Numbers) != "[2]" {
		t.Errorf("completing gives %v, want part 2 missing", err)
	}
	u.put(2, "BBBB")
	u.wantCompleted("aaaaBBBBcc")
}

func TestAHalfWrittenMarkIsIgnored(t *testing.T) {
	t.Parallel()
	u, _ := filled(t, t.TempDir())
	marks, err := os.ReadFile(u.folder("marks"))
	must(t, err)
	clear(marks[20:24])
	must(t, os.WriteFile(u.folder("marks"), marks, 0o600))
	u.wantParts("[2 3]")
}

func TestCompleteFinishesOneThatWasKilled(t *testing.T) {
	t.Parallel()
	u, _ := filled(t, t.TempDir())
	object := filepath.Join(u.dir, "files", "owner", "1-a")
	must(t, errors.Join(os.Mkdir(filepath.Dir(object), 0o700), os.Link(u.folder("data"), object)))
	u = u.restarted()
	expect.Err(
		t,
		"writing a part of a finished object",
		second(u.Write(t.Context(), 2, strings.NewReader("xxxx"), nil)),
		blob.ErrNoUpload,
	)
	u.wantCompleted("aaaabbbbcc")
	expect.Err(t, "the data of the upload", second(os.Lstat(u.folder("data"))), fs.ErrNotExist)
}

func TestCompletingCopiesNoBytes(t *testing.T) {
	t.Parallel()
	u, _ := filled(t, t.TempDir())
	wantPrivate(t, filepath.Join(u.dir, "parts"))
	before, err := os.Stat(u.folder("data"))
	must(t, err)
	u.wantCompleted("aaaabbbbcc")
	after, err := os.Stat(filepath.Join(u.dir, "files", "owner", "1-a"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the object is not the file that the parts were written to, or error %v", err)
	}
	expect.Equal(t, "what the upload still has", names(t, u.folder("")), []string{"begun", "marks"})
}

// TestSweepRemovesOldUploads also looks at one whose making was cut short.
func TestSweepRemovesOldUploads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	old, young, half := begin(t, dir, s), begin(t, dir, s), begin(t, dir, s)
	then := time.Now().Add(-blob.PartsLife - time.Hour)
	must(t, errors.Join(os.Remove(half.folder("begun")), os.Remove(half.folder("marks"))))
	wantGone := func(u upload) {
		t.Helper()
		for what, err := range map[string]error{
			"writing": second(u.Write(
				t.Context(),
				1,
				strings.NewReader("aaaa"),
				nil,
			)), "listing": second(u.List(t.Context())),
		} {
			if !errors.Is(err, blob.ErrNoUpload) {
				t.Errorf("%s gives %v, want ErrNoUpload", what, err)
			}
		}
	}
	wantGone(half)
	must(t, errors.Join(os.Chtimes(old.folder("begun"), then, then), os.Chtimes(half.folder(""), then, then)))
	if n, err := s.Sweep(t.Context(), time.Now().Add(-time.Minute), nil); n != 2 || err != nil {
		t.Errorf("swept %d, %v; want 2", n, err)
	}
	young.wantParts("[]")
	wantGone(old)
}

func TestAWrongLayoutIsRefused(t *testing.T) {
	t.Parallel()
	u, s := filled(t, t.TempDir())
	as := func(l blob.Layout) blob.Upload { return s.Upload(blob.Files, "owner/1-a", u.id, l) }
	for _, l := range []blob.Layout{{Length: 8, PartSize: 4}, {Length: 4, PartSize: 4}} {
		if got, err := as(l).Complete(t.Context(), nil); err == nil {
			t.Errorf("completing as %+v gives %+v", l, got)
		}
	}
	if _, err := as(blob.Layout{
		Length:   100,
		PartSize: 4,
	}).Write(t.Context(), 20, strings.NewReader("xxxx"), nil); err == nil {
		t.Error("a part behind the end was accepted")
	}
	u.wantCompleted("aaaabbbbcc")
}

func TestAnUploadsNameCannotLeadOutOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	create(t, s, "owner/name", "x")
	begin(t, dir, s)
	for _, id := range []string{"", ".", "..", "../files", "../files/owner", "A/../../files", "A\x00", "lower"} {
		u := s.Upload(blob.Files, "owner/1-a", id, layout)
		for what, err := range map[string]error{
			"writing": second(u.Write(
				t.Context(),
				1,
				strings.NewReader("aaaa"),
				nil,
			)), "listing": second(u.List(t.Context())),
			"completing": second(u.Complete(
				t.Context(),
				nil,
			)), "signing": second(u.Sign(t.Context(), 1, nil, time.Minute)),
		} {
			if !errors.Is(err, blob.ErrNoUpload) {
				t.Errorf("%s for %q gives %v, want ErrNoUpload", what, id, err)
			}
		}
		if err := u.Abort(t.Context()); err != nil {
			t.Errorf("ending %q gives %v", id, err)
		}
	}
	expect.Equal(t, "another object", content(t, s, blob.Files, "owner/name"), "x")
	expect.Equal(t, "uploads", len(names(t, filepath.Join(dir, "parts"))), 1)
}

// TestTheLargestObjectBeginsOrIsErrFull allows for file systems that cannot hold
// a file of 48.8 TiB.
func TestTheLargestObjectBeginsOrIsErrFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{NoSync: true})
	l := blob.Layout{Length: blob.MaxParts * blob.MaxPartSize, PartSize: blob.MaxPartSize}
	id, err := s.Begin(t.Context(), blob.Files, "owner/1-a", l)
	if err != nil {
		if left := names(t, filepath.Join(dir, "parts")); !errors.Is(err, blob.ErrFull) || len(left) != 0 {
			t.Errorf("beginning gives %v and leaves %q, want ErrFull and nothing", err, left)
		}
		return
	}
	must(t, second(s.Upload(blob.Files, "owner/1-a", id, l).List(t.Context())))
}

func TestAloneAPartNeedsLittleMemory(t *testing.T) {
	expect.Alone(t)
	s := open(t, t.TempDir(), disk.Options{NoSync: true})
	l := blob.Layout{Length: 64 << 20, PartSize: 64 << 20}
	id, err := s.Begin(t.Context(), blob.Files, "owner/1-a", l)
	must(t, err)
	allocates(t, "a part", 1536<<10, func() error {
		return second(s.Upload(blob.Files, "owner/1-a", id, l).Write(t.Context(), 1, &zeros{l.Length}, nil))
	})
}
