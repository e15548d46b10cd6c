package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
)

// TestACopyIsAsOldAsItself: the sweeper removes what is old and has no record
// yet, and a copy gets its record only after it appeared.
func TestACopyIsAsOldAsItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := disk.Open(dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), blob.Files, "demo/1-a", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-1000 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "files", "demo", "1-a"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(t.Context(), blob.Files, "demo/1-a", blob.Backup, "demo/1-b"); err != nil {
		t.Fatal(err)
	}
	objects, err := s.List(t.Context(), blob.Backup, "", 10)
	if err != nil || len(objects) != 1 {
		t.Fatalf("the backup area lists %v, %v", objects, err)
	}
	if age := time.Since(objects[0].Modified); age > time.Hour {
		t.Errorf("the copy counts as %s old", age)
	}
}

func TestAnObjectRemovedWhileItIsCopiedIsNotFound(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), disk.Options{NoSync: true})
	create(t, s, "demo/1-a", "x")
	s.SetLink(func(from, to string) error {
		if err := os.Remove(from); err != nil {
			t.Error(err)
		}
		return os.Link(from, to)
	})
	if err := s.Copy(t.Context(), blob.Files, "demo/1-a", blob.Backup, "demo/1-b"); err != blob.ErrNotFound {
		t.Errorf("the copy ends with %v", err)
	}
}
