package disk_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ferry/shared/blob"
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
