package disk

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/crc64nvme"
	"golang.org/x/sys/unix"

	"ferry/shared/blob"
)

// oldJournal returns a journal of the release of November 2026, which was killed
// after writing it. File N has N thousand bytes of lines "old file N".
func oldJournal(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/journal.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// oldKeys are the keys of files 1 to 5.
var oldKeys = []string{
	"demo/1-DOaxUE8pSRvdAyfpf93lDS",
	"demo/2-EKK2FYgPuqmhXeboXXfHWR",
	"demo/3-CE-FEqGTEYJbRZkEzb74Cl",
	"demo/4-WNbKyUWn0zEbI3Ei4YcfL3",
	"demo/5-B2CqK2YLX_h_z-VuAjRTF2",
}

// withJournal makes a folder in which the disk has lost file 1 and the bytes of 2 and 3.
func withJournal(t *testing.T, journal []byte) string {
	t.Helper()
	dir := t.TempDir()
	owner := filepath.Join(dir, "files", "demo")
	if err := os.MkdirAll(owner, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string][]byte{
		filepath.Join(dir, "journal"):                journal,
		filepath.Join(dir, "files", oldKeys[1]):      nil,
		filepath.Join(dir, "files", oldKeys[2]):      make([]byte, 3000),
		filepath.Join(owner, "9-of-no-such-journal"): []byte("kept"),
	} {
		if err := os.WriteFile(path, there, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openAndRead(t *testing.T, dir string) map[string]string {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := s.List(t.Context(), blob.Files, "", blob.MaxList)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range objects {
		content, err := os.ReadFile(filepath.Join(dir, "files", o.Key))
		if err != nil {
			t.Fatal(err)
		}
		all[o.Key] = string(content)
	}
	if left, err := readNames(s.tmp()); err != nil || len(left) != 0 {
		t.Errorf("the temporary files %q are left, or error %v", left, err)
	}
	return all
}

func oldContent(n int) string {
	return strings.Repeat("old file "+string(rune('0'+n))+"\n", 1000)[:n*1000]
}

func TestAnOldJournalIsReplayedOnce(t *testing.T) {
	t.Parallel()
	dir := withJournal(t, oldJournal(t))
	for range 2 {
		all := openAndRead(t, dir)
		for i, key := range oldKeys {
			if got, want := all[key], oldContent(i+1); got != want {
				t.Errorf("%s has %d bytes: %.40q, want %.40q", key, len(got), got, want)
			}
		}
		if all["demo/9-of-no-such-journal"] != "kept" {
			t.Error("another file was changed")
		}
		if !missing(filepath.Join(dir, "journal")) {
			t.Error("the journal is still there")
		}
	}
}

func TestReplayStopsAtABatchThatWasCutOff(t *testing.T) {
	t.Parallel()
	journal := oldJournal(t)
	clear(journal[bytes.Index(journal, []byte("old file 4")):][:8])
	all := openAndRead(t, withJournal(t, journal))
	if all[oldKeys[2]] != oldContent(3) || all[oldKeys[3]] != "" || all[oldKeys[4]] != "" {
		t.Error("want only the first three files restored")
	}
}

// TestBatchesOfAnEarlierRunAreNotReplayed gives the second batch another epoch.
func TestBatchesOfAnEarlierRunAreNotReplayed(t *testing.T) {
	t.Parallel()
	journal := oldJournal(t)
	second := bytes.LastIndex(journal[:bytes.Index(journal, []byte("old file 2"))], []byte(oldMagic))
	third := bytes.LastIndex(journal[:bytes.Index(journal, []byte("old file 3"))], []byte(oldMagic))
	b := journal[second:third]
	b[len(oldMagic)]++
	sum := crc64nvme.New()
	sum.Write(b[:oldBatchHeader-8])
	sum.Write(b[oldBatchHeader:])
	binary.LittleEndian.PutUint64(b[oldBatchHeader-8:], sum.Sum64())
	if all := openAndRead(t, withJournal(t, journal)); all[oldKeys[0]] != oldContent(1) || all[oldKeys[1]] != "" {
		t.Error("want only the first file restored")
	}
	if all := openAndRead(t, withJournal(t, b)); all[oldKeys[1]] != oldContent(2) {
		t.Error("a batch of that epoch is not replayed although it comes first")
	}
}

func TestAnOldJournalInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := withJournal(t, oldJournal(t))
	f, err := os.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if all := openAndRead(t, dir); all[oldKeys[0]] != "" {
		t.Error("the journal of another process was replayed")
	}
	if missing(f.Name()) {
		t.Error("the journal of another process was removed")
	}
}

func FuzzReplay(f *testing.F) {
	f.Add(oldJournal(f)[:2000])
	f.Fuzz(func(_ *testing.T, journal []byte) {
		_ = replay(journal, func(blob.Area, string, []byte) error { return nil })
	})
}
