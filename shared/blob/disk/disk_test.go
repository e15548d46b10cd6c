package disk_test

import (
	"crypto/rand"
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

	"ferry/shared/blob"
	"ferry/shared/blob/blobtest"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/expect"
	"ferry/shared/table/sqlite"
)

func open(t testing.TB, dir string, o disk.Options) *disk.Store {
	t.Helper()
	s, err := disk.Open(dir, o)
	must(t, err)
	return s
}

func create(t testing.TB, s *disk.Store, key, content string) {
	t.Helper()
	must(t, second(s.Create(t.Context(), blob.Files, key, strings.NewReader(content), int64(len(content)))))
}

func failLinks(s *disk.Store, code syscall.Errno) {
	s.SetLink(func(from, to string) error {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: code}
	})
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// withTable returns a store that keeps its small objects in a table beside it.
func withTable(t testing.TB, dir string, noSync bool) (*disk.Store, *sqlite.Blobs) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(dir, "table.sqlite"), sqlite.Options{NoSync: noSync})
	must(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return open(t, dir, disk.Options{NoSync: noSync, Small: db.Blobs()}), db.Blobs()
}

func content(t testing.TB, s *disk.Store, area blob.Area, key string) string {
	t.Helper()
	r, err := s.Open(t.Context(), area, key)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	synced, _ := withTable(t, t.TempDir(), false)
	linkless := open(t, t.TempDir(), disk.Options{NoSync: true})
	failLinks(linkless, syscall.EPERM)
	for what, store := range map[string]func(*testing.T) blobtest.PartsStore{
		"each test has its own unsynced folder": func(t *testing.T) blobtest.PartsStore {
			return open(t, t.TempDir(), disk.Options{NoSync: true})
		},
		"all tests share one folder with a table for small objects": func(*testing.T) blobtest.PartsStore {
			return synced
		},
		"the file system has no links": func(*testing.T) blobtest.PartsStore { return linkless },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			blobtest.Run(t, store, blobtest.Flaws{})
		})
	}
}

// allocates checks how many bytes all goroutines allocate meanwhile.
func allocates(t *testing.T, what string, most uint64, do func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, do())
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("%s: allocated %d bytes, want at most %d", what, got, most)
	}
}

func TestAloneCreateNeedsLittleMemory(t *testing.T) {
	expect.Alone(t)
	s := open(t, t.TempDir(), disk.Options{NoSync: true})
	for name, tc := range map[string]struct {
		size, announced int64
		most            uint64
	}{
		"small":   {size: 100, announced: 100, most: 64 << 10},
		"large":   {size: 64 << 20, announced: 64 << 20, most: 1 << 20},
		"unknown": {size: 64 << 20, announced: -1, most: 1 << 20},
	} {
		allocates(t, name, tc.most, func() error {
			return second(s.Create(t.Context(), blob.Files, "owner/"+name, &zeros{tc.size}, tc.announced))
		})
	}
}

type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	n := min(int64(len(p)), z.left)
	if z.left -= n; n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

func TestFilesAndFoldersArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	s := open(t, dir, disk.Options{})
	create(t, s, "owner/name", "x")
	wantPrivate(t, dir)
}

func wantPrivate(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	}))
}

func TestOpenReturnsTheFileItself(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{})
	create(t, s, "owner/name", "x")
	r, err := s.Open(t.Context(), blob.Files, "owner/name")
	must(t, err)
	defer r.Close()
	if _, ok := r.(*os.File); !ok {
		t.Errorf("got a %T, want an *os.File", r)
	}
}

func TestFinishedCreatesLeaveNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	create(t, s, "owner/name", "x")
	expect.Err(
		t,
		"a taken key",
		second(s.Create(t.Context(), blob.Files, "owner/name", strings.NewReader("y"), 1)),
		blob.ErrExists,
	)
	expect.Err(
		t,
		"too few bytes",
		second(s.Create(t.Context(), blob.Files, "owner/short", strings.NewReader("y"), 2)),
		blob.ErrLength,
	)
	if err := s.Copy(t.Context(), blob.Files, "owner/name", blob.Backup, "owner/name"); err != nil {
		t.Error(err)
	}
	expect.Equal(t, "the temporary files", names(t, filepath.Join(dir, "tmp")), nil)
}

func TestSweepRemovesWhatACrashLeftAndNothingOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	create(t, s, "owner/name", "x")
	now := time.Now()
	old, older, young := rand.Text(), ".copy-1", rand.Text()
	for name, age := range map[string]time.Duration{
		old:          2 * time.Hour,
		older:        50 * time.Hour,
		young:        time.Minute,
		"thesis.txt": 50 * time.Hour,
	} {
		path := filepath.Join(dir, "tmp", name)
		must(t, os.WriteFile(path, []byte("half"), 0o600))
		must(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	for _, folder := range []string{
		"removed/2020-01-01/files/owner", "removed/2020-01-02/backup", "removed/2020-01-02/photos",
	} {
		must(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	for _, want := range []int{2, 0} {
		if removed, err := s.Sweep(t.Context(), now.Add(-time.Hour), nil); removed != want || err != nil {
			t.Errorf("swept %d with error %v, want %d", removed, err, want)
		}
	}
	for folder, want := range map[string][]string{
		"tmp": {young, "thesis.txt"}, "files/owner": {"name"}, "removed": {"2020-01-02"}, "removed/2020-01-02": {"photos"},
	} {
		expect.Equal(t, folder, names(t, filepath.Join(dir, folder)), want)
	}
}

func TestACopyCountsAsModifiedWhenItAppears(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	create(t, s, "owner/name", "x")
	old := time.Now().Add(-100 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "files", "owner", "name"), old, old))
	must(t, s.Copy(t.Context(), blob.Files, "owner/name", blob.Backup, "owner/copy"))
	objects, err := s.List(t.Context(), blob.Backup, "", 10)
	if err != nil || len(objects) != 1 || time.Since(objects[0].Modified) > time.Hour {
		t.Errorf("got %+v and error %v, want one object modified now", objects, err)
	}
}

func TestListSkipsWhatIsNotAnObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, disk.Options{})
	create(t, s, "owner/name", "x")
	files := filepath.Join(dir, "files")
	for _, path := range []string{
		filepath.Join(files, "stray"),
		filepath.Join(files, "owner", ".hidden"),
		filepath.Join(files, "owner", "with space"),
	} {
		must(t, os.WriteFile(path, nil, 0o600))
	}
	for _, path := range []string{filepath.Join(files, "empty"), filepath.Join(files, "owner", "folder")} {
		must(t, os.Mkdir(path, 0o700))
	}
	objects, err := s.List(t.Context(), blob.Files, "", 10)
	if err != nil || len(objects) != 1 || objects[0].Key != "owner/name" {
		t.Errorf("got %+v and error %v, want only owner/name", objects, err)
	}
}

func TestAFullDiskGivesErrFullAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, code := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		dir := t.TempDir()
		s := open(t, dir, disk.Options{})
		create(t, s, "owner/there", "x")
		failLinks(s, code)
		large := strings.NewReader(strings.Repeat("x", 100<<10))
		expect.Err(
			t,
			code.Error(),
			second(s.Create(t.Context(), blob.Files, "owner/name", large, large.Size())),
			blob.ErrFull,
		)
		expect.Err(
			t,
			code.Error(),
			s.Copy(t.Context(), blob.Files, "owner/there", blob.Backup, "owner/name"),
			blob.ErrFull,
		)
		expect.Err(t, code.Error(), second(s.Open(t.Context(), blob.Files, "owner/name")), blob.ErrNotFound)
		expect.Equal(t, "the temporary files", names(t, filepath.Join(dir, "tmp")), nil)
	}
}

func TestOpenNamesAFolderThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := disk.Open(dir, disk.Options{})
		if !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), filepath.Dir(dir)) {
			t.Errorf("got error %v, want %v and the name of %s", err, syscall.ENOTDIR, dir)
		}
	}
}

// TestAFolderThatASweepHasJustRemovedIsEmpty has a link to nothing, which is among the names
// and cannot be read.
func TestAFolderThatASweepHasJustRemovedIsEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := disk.Open(dir, disk.Options{})
	must(t, err)
	must(t, os.Symlink("nothing", filepath.Join(dir, "files", "D0-2026-01-01")))
	if objects, err := s.List(t.Context(), blob.Files, "", 10); err != nil || len(objects) != 0 {
		t.Errorf("the list has %v, %v", objects, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
