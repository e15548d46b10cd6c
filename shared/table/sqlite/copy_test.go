package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// long is an item that takes more than one page of the file.
type long struct{ Text string }

func TestADamagedTableIsNotCopied(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]table.Op{
		"damage in the middle of a long item is noticed":     table.Put(numberKey(0, 0), long{strings.Repeat("x", 10_000)}),
		"damage before the expiry of a long item is noticed": table.Put(numberKey(0, 0), long{strings.Repeat("x", 10_000)}).Expire(time.Now().Add(time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, to := filepath.Join(dir, "table.db"), filepath.Join(dir, "copy.db")
			db := open(t, path, sqlite.Options{})
			if err := db.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			db.Close()
			if err := sqlite.CopyFile(t.Context(), path, to); err != nil {
				t.Fatalf("copying an undamaged table: %v", err)
			}
			damage(t, path)
			other := filepath.Join(dir, "other.db")
			if err := sqlite.CopyFile(t.Context(), path, other); !errors.Is(err, sqlite.ErrDamaged) {
				t.Errorf("got error %v, want ErrDamaged", err)
			}
			if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the damaged copy was kept: %v", err)
			}
		})
	}
}

// damage overwrites all pages that hold only a part of a long item.
func damage(t *testing.T, path string) {
	t.Helper()
	const page = 4096
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := false
	for at := 0; at+page <= len(content); at += page {
		part := content[at+4 : at+page] // behind the number of the next page
		if strings.HasPrefix(string(part), strings.Repeat("x", 1000)) {
			damaged = true
			for i := range part {
				part[i] = 1
			}
		}
	}
	if !damaged {
		t.Fatal("no page holds a part of the item")
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
