package backup_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/backup"
	"ferry/shared/boot/expect"
)

// lay makes files in a folder; those whose names end with a slash are folders.
func lay(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, content := range all {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o700)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		expect.NoErr(t, err)
	}
}

// tree returns what is in a folder, as lay takes it.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	expect.NoErr(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			all[name+"/"] = ""
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = string(content)
		return err
	}))
	return all
}

const otherDatabase = "SQLite format 3\x00" +
	"of some other program, whose mark is none of ours, and which is long enough"

func TestAFolderThatIsNotFerrysIsRefusedAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	for name, there := range map[string]map[string]string{
		"it has files in folders of the same name": {
			"files/2024/taxes.pdf": "taxes",
			"backup/a/b":           "b",
			"damaged/files/c/d":    "d",
		},
		"it has an empty folder":            {"photos/": ""},
		"it has another program's database": {"table.sqlite": otherDatabase, "table.sqlite.kept": otherDatabase},
		"its unfinished table is a folder":  {"table.sqlite.new/x": "x"},
		"its unfinished table is a text":    {"table.sqlite.new": "my new table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lay(t, dir, there)
			before := tree(t, dir)
			_, made := backup.Make(t.Context(), s.Data, dir, false, unseen)
			_, restored := backup.Restore(t.Context(), s.to, dir, unseen)
			want := backup.ErrTaken
			if there["table.sqlite"] != "" {
				want = backup.ErrHasData
			}
			if !errors.Is(made, backup.ErrTaken) || !errors.Is(restored, want) {
				t.Errorf("backup: %v; restore: %v", made, restored)
			}
			expect.Equal(t, "the folder", tree(t, dir), before)
		})
	}
}

func TestAFolderThatIsEmptyOrHasABeginningIsTaken(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	for name, there := range map[string]map[string]string{
		"it is a new disk's": {"lost+found/": ""},
		"a first run was killed before its table had bytes": {"table.sqlite.new": ""},
		"a first run was killed within its table": {
			"table.sqlite.new":     otherDatabase,
			"table.sqlite.new-wal": "x",
		},
		"a first run was killed while it wrote a file": {
			"table.sqlite.new": strings.Repeat("\x00", 8192),
			"tmp/.copy-1":      "x",
			"files/":           "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, restored := t.TempDir(), t.TempDir()
			lay(t, made, there)
			lay(t, restored, there)
			_, err := backup.Make(t.Context(), s.Data, made, false, unseen)
			_, failed := backup.Restore(t.Context(), s.to, restored, unseen)
			expect.NoErr(t, errors.Join(err, failed))
			expect.Equal(t, "the backup", stored(t, made), stored(t, s.to))
			expect.Equal(t, "what is restored", stored(t, restored), stored(t, s.to))
		})
	}
}

func TestAFirstBackupThatWasInterruptedTwiceGoesOn(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	to := filepath.Join(t.TempDir(), "new")
	ctx, interrupt := context.WithCancel(t.Context())
	_, err := backup.Make(ctx, s.Data, to, false, backup.Progress{
		Expect: func(int64) { interrupt() },
		Done:   unseen.Done,
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := backup.Make(ctx, s.Data, to, false, unseen); err == nil { // it ends within the table
		t.Fatal("it was made")
	}
	_, err = backup.Make(t.Context(), s.Data, to, false, unseen)
	expect.NoErr(t, err)
	expect.Equal(t, "the backup", stored(t, to), stored(t, s.to))
}

// TestABackupRemovesOnlyWhatFerryWrote damages a file, moves the other, and mends both, in a
// backup where somebody keeps more.
func TestABackupRemovesOnlyWhatFerryWrote(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	foreign := map[string]string{
		"files/2024/taxes.pdf": "taxes", "files/2024/empty/": "", "files/D0-2024-01-01/12-short": "x", "backup/notes/1-a": "x", "files/top": "x",
		"damaged/files/2024/taxes.pdf": "bad", "damaged/notes/": "", "damaged/backup/empty/": "", "damaged/files/2024/1/deep": "x", "photos/": "",
	}
	lay(t, s.to, foreign)
	before := s.record(2)
	s.move(1)
	s.change(s.Dir, before, other)
	s.backup("with damage", true, "ann/2 x")
	if _, err := os.Stat(filepath.Join(s.to, "damaged", "files", before.Blob)); err != nil {
		t.Error(err)
	}
	s.change(s.Dir, before, contents[1])
	s.move(2)
	if got := s.backup("after it was mended", false); got.Removed != 2 {
		t.Errorf("%d removed", got.Removed)
	}
	now := tree(t, s.to)
	for name, content := range foreign {
		if is, there := now[name]; !there || is != content {
			t.Errorf("%s is %q, %v", name, is, there)
		}
		delete(now, name)
	}
	for name := range now {
		if strings.HasPrefix(name, "damaged/files/D") || strings.HasSuffix(name, before.Blob) {
			t.Errorf("%s is left", name)
		}
	}
}

func TestLinksLeadABackupNowhere(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	alias, begun := filepath.Join(t.TempDir(), "alias"), t.TempDir()
	for link, to := range map[string]string{
		alias: filepath.Join(
			s.Dir,
			"files",
		), filepath.Join(s.to, "damaged"): t.TempDir(), filepath.Join(begun, "table.sqlite.new"): t.TempDir(),
	} {
		expect.NoErr(t, os.Symlink(to, link))
	}
	for to, want := range map[string]error{alias: backup.ErrInside, s.to: backup.ErrForeign, begun: backup.ErrTaken} {
		_, err := backup.Make(t.Context(), s.Data, to, false, unseen)
		expect.Err(t, "a backup to "+to, err, want)
	}
}
