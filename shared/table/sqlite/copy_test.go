package sqlite_test

import (
	"bytes"
	"encoding/json"
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

func TestADamagedTableIsNotCopiedButASingleItemIs(t *testing.T) {
	t.Parallel()
	text := long{strings.Repeat("x", 10_000)}
	for name, c := range map[string]struct {
		op   table.Op
		want error
	}{
		"damage in the middle of a long item is copied":      {table.Put(numberKey(0, 0), text), nil},
		"damage before the expiry of a long item is noticed": {table.Put(numberKey(0, 0), text).Expire(time.Now().Add(time.Hour)), sqlite.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, to := filepath.Join(dir, "table.db"), filepath.Join(dir, "copy.db")
			db := open(t, path, sqlite.Options{})
			must(t, db.Write(t.Context(), c.op))
			db.Close()
			must(t, sqlite.CopyFile(t.Context(), path, to))
			damage(t, path)
			other := filepath.Join(dir, "other.db")
			if err := sqlite.CopyFile(t.Context(), path, other); !errors.Is(err, c.want) {
				t.Errorf("got error %v, want %v", err, c.want)
			}
			if _, err := os.Stat(other); errors.Is(err, fs.ErrNotExist) != (c.want != nil) {
				t.Errorf("the copy: %v", err)
			}
			if c.want != nil {
				return
			}
			var items [2]table.Item
			for i, path := range []string{path, other} {
				must(t, open(t, path, sqlite.Options{}).Get(t.Context(), numberKey(0, 0), &items[i]))
			}
			if !bytes.Equal(items[0].Raw, items[1].Raw) || json.Valid(items[1].Raw) {
				t.Errorf("the item was copied as %q", items[1].Raw)
			}
		})
	}
}

// damage overwrites all pages that hold only a part of a long item.
func damage(t *testing.T, path string) {
	t.Helper()
	const page = 4096
	content, err := os.ReadFile(path)
	must(t, err)
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
	must(t, os.WriteFile(path, content, 0o600))
}
