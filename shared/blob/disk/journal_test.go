package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
)

// withJournal skips on a file system where none is used.
func withJournal(t testing.TB, dir string) *disk.Store {
	t.Helper()
	s := open(t, dir, disk.Options{})
	if !s.HasJournal() {
		t.Skip("the file system of temporary folders does not keep the order of its changes")
	}
	t.Cleanup(func() { s.Close() })
	return s
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

// afterPowerLoss is a folder in which nothing is left but the journal.
func afterPowerLoss(t testing.TB, dir string) string {
	t.Helper()
	journal, err := os.ReadFile(filepath.Join(dir, "journal"))
	lost := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(lost, "journal"), journal, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

func TestSmallObjectsSurviveALossOfPower(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withJournal(t, dir)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() { create(t, s, fmt.Sprint("owner/", i), strings.Repeat("x", i*30)) })
	}
	wg.Wait()
	if _, err := s.Create(t.Context(), blob.Backup, "other/name", strings.NewReader("in the backup area"), -1); err != nil {
		t.Fatal(err)
	}
	lost := afterPowerLoss(t, dir)
	if err := os.MkdirAll(filepath.Join(lost, "files", "owner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]string{"7": "", "9": strings.Repeat("y", 270)} { // the name without the bytes
		if err := os.WriteFile(filepath.Join(lost, "files", "owner", name), []byte(there), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = withJournal(t, lost)
	for i := range 200 {
		if got := content(t, s, blob.Files, fmt.Sprint("owner/", i)); got != strings.Repeat("x", i*30) {
			t.Errorf("object %d has %d bytes: %.50s", i, len(got), got)
		}
	}
	if got := content(t, s, blob.Backup, "other/name"); got != "in the backup area" {
		t.Errorf("the object in the backup area reads %q", got)
	}
	if left := names(t, filepath.Join(lost, "tmp")); len(left) != 0 {
		t.Errorf("%q lie aside", left)
	}
}

func TestABatchThatWasCutOffEndsTheJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withJournal(t, dir)
	create(t, s, "owner/first", "first")
	create(t, s, "owner/second", "second")
	lost := afterPowerLoss(t, dir)
	path := filepath.Join(lost, "journal")
	journal, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(journal[bytes.Index(journal, []byte("owner/second")):], make([]byte, 8))
	if err := os.WriteFile(path, journal, 0o600); err != nil {
		t.Fatal(err)
	}
	s = withJournal(t, lost)
	if got := content(t, s, blob.Files, "owner/first"); got != "first" {
		t.Errorf("the first object reads %q", got)
	}
	if _, err := s.Open(t.Context(), blob.Files, "owner/second"); err != blob.ErrNotFound {
		t.Errorf("the second object, never answered, gives %v", err)
	}
}

// TestTheJournalBeginsAnewWhenItIsFull: what it then no longer holds is in the
// files, and what it holds is restored.
func TestTheJournalBeginsAnewWhenItIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withJournal(t, dir)
	big := strings.Repeat("z", 60<<10)
	const n = 1200 // 70 MB; the journal has 32
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			create(t, s, fmt.Sprint("owner/", i), fmt.Sprint(i, big))
			<-slots
		})
	}
	wg.Wait()
	create(t, s, "owner/last", "last")
	for i := range n {
		if got := content(t, s, blob.Files, fmt.Sprint("owner/", i)); got != fmt.Sprint(i, big) {
			t.Fatalf("object %d reads %.20q", i, got)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "journal")); err != nil || info.Size() != 32<<20 {
		t.Errorf("the journal is %v, %v", info, err)
	}
	s = withJournal(t, afterPowerLoss(t, dir))
	if got := content(t, s, blob.Files, "owner/last"); got != "last" {
		t.Errorf("the last object reads %q", got)
	}
	restored, err := s.List(t.Context(), blob.Files, "", blob.MaxList)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range restored {
		if got := content(t, s, blob.Files, o.Key); o.Key != "owner/last" && got != strings.TrimPrefix(o.Key, "owner/")+big {
			t.Errorf("%s was restored as %.20q", o.Key, got)
		}
	}
}

func TestAClosedStoreLeavesNothingInTheJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withJournal(t, dir)
	create(t, s, "owner/name", "x")
	if err := s.Delete(t.Context(), blob.Files, "owner/name"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = withJournal(t, dir)
	if _, err := s.Open(t.Context(), blob.Files, "owner/name"); err != blob.ErrNotFound {
		t.Errorf("the deleted object gives %v", err)
	}
}

// TestWhatAnEarlierRunLeftInTheJournalIsNotRestored has a batch of that run
// follow the last one of this run, as it does where objects are of one size.
func TestWhatAnEarlierRunLeftInTheJournalIsNotRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withJournal(t, dir)
	create(t, s, "owner/a", "1")
	create(t, s, "owner/b", "2")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	create(t, withJournal(t, dir), "owner/c", "3")
	s = withJournal(t, afterPowerLoss(t, dir))
	if got := content(t, s, blob.Files, "owner/c"); got != "3" {
		t.Errorf("the object of this run reads %q", got)
	}
	if _, err := s.Open(t.Context(), blob.Files, "owner/b"); err != blob.ErrNotFound {
		t.Errorf("the object of the earlier run gives %v", err)
	}
}

// TestTheContentOfAnObjectIsNotTakenForTheJournal has an object be a journal
// itself, and one of a later run end where it begins.
func TestTheContentOfAnObjectIsNotTakenForTheJournal(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	create(t, withJournal(t, other), "victim/name", "forged")
	forged, err := os.ReadFile(filepath.Join(other, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := withJournal(t, dir)
	create(t, s, "owner/a", string(forged[:1000]))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	create(t, withJournal(t, dir), "owner/b", "")
	s = withJournal(t, afterPowerLoss(t, dir))
	if _, err := s.Open(t.Context(), blob.Files, "victim/name"); err != blob.ErrNotFound {
		t.Errorf("an object of the forged journal gives %v", err)
	}
}

// TestAJournalIsRestoredWhereNoneIsUsed: what it holds may be nowhere else.
func TestAJournalIsRestoredWhereNoneIsUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	create(t, withJournal(t, dir), "owner/name", "content")
	lost := afterPowerLoss(t, dir)
	s := open(t, lost, disk.Options{NoSync: true})
	if got := content(t, s, blob.Files, "owner/name"); got != "content" {
		t.Errorf("the object reads %q", got)
	}
	if s.HasJournal() {
		t.Error("a store that never syncs has a journal")
	}
	create(t, s, "owner/unsynced", "content")
	if err := errors.Join(s.Delete(t.Context(), blob.Files, "owner/name"), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := withJournal(t, lost).Open(t.Context(), blob.Files, "owner/name"); err != blob.ErrNotFound {
		t.Errorf("the object that was deleted since gives %v", err)
	}
}

func TestASecondProcessDoesWithoutTheJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := withJournal(t, dir)
	second := open(t, dir, disk.Options{})
	if second.HasJournal() {
		t.Error("two have the journal")
	}
	create(t, second, "owner/second", "second")
	create(t, first, "owner/first", "first")
	for _, name := range []string{"first", "second"} {
		if got := content(t, first, blob.Files, "owner/"+name); got != name {
			t.Errorf("%s reads %q", name, got)
		}
	}
}

func TestAfterAFailedSyncOfTheJournalObjectsAreSyncedByThemselves(t *testing.T) {
	t.Parallel()
	s := withJournal(t, t.TempDir())
	broken := errors.New("input/output error")
	if err := s.FailJournal(broken); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), blob.Files, "owner/lost", strings.NewReader("x"), 1); !errors.Is(err, broken) {
		t.Errorf("got error %v, want that of the sync", err)
	}
	if _, err := s.Open(t.Context(), blob.Files, "owner/lost"); err != blob.ErrNotFound {
		t.Errorf("the object that could not be kept gives %v", err)
	}
	create(t, s, "owner/kept", "x")
}

func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	s := withJournal(f, dir)
	create(f, s, "owner/name", "content")
	journal, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(journal[:200])
	f.Fuzz(func(t *testing.T, journal []byte) {
		_ = disk.Replay(bytes.NewReader(journal), func(blob.Area, string, []byte) error { return nil })
	})
}
