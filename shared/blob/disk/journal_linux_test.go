package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
)

// TestAJournalThatWasCutOffHasAllItsBlocksAgain: one with holes would need room
// while it is written.
func TestAJournalThatWasCutOffHasAllItsBlocksAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	create(t, withJournal(t, dir), "owner/name", "content")
	lost := afterPowerLoss(t, dir)
	path := filepath.Join(lost, "journal")
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	s := withJournal(t, lost)
	if got := content(t, s, blob.Files, "owner/name"); got != "content" {
		t.Errorf("the object reads %q", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != 32<<20 || got < 32<<20 {
		t.Errorf("the journal has %d bytes, and room for %d", info.Size(), got)
	}
}

// restored are the keys that a journal held, which is empty then.
func restored(t *testing.T, path string) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	j, err := disk.OpenJournal(path, func() error { return nil }, func(_ blob.Area, key string, _ []byte) error {
		keys[key] = true
		return nil
	})
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestTheJournalIsKeptUntilTheFilesAreDurable has the file system not take them.
func TestTheJournalIsKeptUntilTheFilesAreDurable(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	fail := func() error { return broken }
	nothing := func(blob.Area, string, []byte) error { return nil }
	begin := func(t *testing.T, flushTree func() error) (path string, j disk.Journal) {
		path = filepath.Join(t.TempDir(), "journal")
		j, err := disk.OpenJournal(path, flushTree, nothing)
		if err == nil {
			err = j.Add("owner/name", []byte("content"))
		}
		if err != nil {
			t.Fatal(err)
		}
		return path, j
	}
	t.Run("at the end", func(t *testing.T) {
		t.Parallel()
		path, j := begin(t, fail)
		if err := j.Close(); !errors.Is(err, broken) {
			t.Errorf("closing gives %v", err)
		}
		if !restored(t, path)["owner/name"] {
			t.Error("the object is lost")
		}
	})
	t.Run("at the start", func(t *testing.T) {
		t.Parallel()
		path, j := begin(t, fail)
		if err := j.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.OpenJournal(path, fail, nothing); !errors.Is(err, broken) {
			t.Errorf("opening gives %v", err)
		}
		if !restored(t, path)["owner/name"] {
			t.Error("the object is lost")
		}
	})
	t.Run("when it is full", func(t *testing.T) {
		t.Parallel()
		syncing := make(chan struct{})
		path, j := begin(t, func() error { <-syncing; return broken })
		var err error
		taken := 0
		for content := make([]byte, 60<<10); err == nil && taken < 1000; taken++ {
			err = j.Add(fmt.Sprint("owner/", taken), content)
		}
		close(syncing)
		if taken--; err != disk.ErrNoJournal {
			t.Errorf("after %d objects of 60 KiB: %v", taken, err)
		}
		if err := j.Close(); !errors.Is(err, broken) {
			t.Errorf("closing gives %v", err)
		}
		if keys := restored(t, path); len(keys) != taken+1 {
			t.Errorf("%d objects are restored of %d", len(keys), taken+1)
		}
	})
}
