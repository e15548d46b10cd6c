package sqlite_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	_ "modernc.org/sqlite" // another client of the file
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// raw opens the file as another program would.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestOpenSaysWhyAFileCannotBeUsed(t *testing.T) {
	t.Parallel()
	write := func(content []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			must(t, os.WriteFile(path, content, 0o600))
		}
	}
	statement := func(s string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db := raw(t, path)
			run(t, db, s)
			db.Close()
		}
	}
	tests := map[string]struct {
		prepare func(*testing.T, string)
		below   string
		want    error
	}{
		"a text file is damaged": {
			prepare: write([]byte(strings.Repeat("not a database, but long enough\n", 200))),
			want:    sqlite.ErrDamaged,
		},
		"another program's table is damaged": {
			prepare: statement("CREATE TABLE cars (name TEXT)"),
			want:    sqlite.ErrDamaged,
		},
		"another program's version is damaged": {
			prepare: statement("PRAGMA user_version = 7"),
			want:    sqlite.ErrDamaged,
		},
		"an older layout is refused": {
			prepare: statement("PRAGMA application_id = 1181053561; PRAGMA user_version = 1"),
			want:    sqlite.ErrOlder,
		},
		"a newer layout is refused": {
			prepare: statement("PRAGMA application_id = 1181053561; PRAGMA user_version = 3"),
			want:    sqlite.ErrNewer,
		},
		"a folder is refused": {
			prepare: func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) },
			want:    syscall.EISDIR,
		},
		"a path below a file is refused": {prepare: write(nil), below: "table.db", want: syscall.ENOTDIR},
		"a dangling link is refused": {
			prepare: func(t *testing.T, path string) {
				must(t, os.Symlink(filepath.Join(t.TempDir(), "no", "such"), path))
			},
			want: fs.ErrNotExist,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			tc.prepare(t, path)
			before, _ := os.ReadFile(path) // of a folder there is none
			file := path
			path = filepath.Join(path, tc.below)
			db, err := sqlite.Open(path, sqlite.Options{})
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			if text := err.Error(); !strings.Contains(text, path) || strings.Contains(text, "\n") {
				t.Errorf("%q is not one line that names %s", text, path)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestReadingADamagedFileIsErrDamaged(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	for i := range 200 {
		must(t, db.Write(t.Context(), table.Put(numberKey(0, i), number{Text: strings.Repeat("x", 1000)})))
	}
	must(t, db.Close())
	content, err := os.ReadFile(path)
	must(t, err)
	for i := 8192; i < len(content); i++ {
		content[i] = 0xa5
	}
	must(t, os.WriteFile(path, content, 0o600))
	db, err = sqlite.Open(path, sqlite.Options{})
	if err == nil {
		defer db.Close()
		err = db.Scan(t.Context(), func(table.Item) error { return nil })
	}
	wantErr(t, err, sqlite.ErrDamaged)
}

// TestAnyPathWorks also looks at who may read the folder, the table and its log.
func TestAnyPathWorks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%41é&mode=ro", "table ?x.db")
	for i := range 2 {
		db, err := sqlite.Open(path, sqlite.Options{})
		must(t, err)
		must(t, db.Write(t.Context(), table.Update(counterKey()).Add("n", 1)))
		wantNumber(t, db, counterKey(), int64(i+1))
		for _, part := range []string{filepath.Dir(path), path, path + "-wal"} {
			if info, err := os.Stat(part); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is not private: %+v, %v", part, info, err)
			}
		}
		must(t, db.Close())
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil ||
		len(files) != 1 ||
		files[0].Name() != filepath.Base(path) {
		t.Errorf("after closing: got %v, want only the table, error %v", files, err)
	} else if info, err := files[0].Info(); err != nil || info.Size() == 0 {
		t.Errorf("the file is empty, or error %v", err)
	}
}

// long is an item that takes more than one page of the file.
type long struct{ Text string }

func TestADamagedTableIsNotCopiedButASingleItemIs(t *testing.T) {
	t.Parallel()
	text := long{strings.Repeat("x", 10_000)}
	for name, c := range map[string]struct {
		op   table.Op
		want error
	}{
		"damage in the middle of a long item is copied": {table.Put(numberKey(0, 0), text), nil},
		"damage before the expiry of a long item is noticed": {table.Put(numberKey(0, 0), text).
			Expire(time.Now().Add(time.Hour)), sqlite.ErrDamaged},
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
			wantErr(t, sqlite.CopyFile(t.Context(), path, other), c.want)
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
