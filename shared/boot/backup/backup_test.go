package backup_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/backup"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/table"
	"ferry/shared/users"
)

// backedUp is ann, who has two files, a small and a large one, with a folder for a backup of
// her service, which has been made.
type backedUp struct {
	apitest.Caller
	to string
}

var unseen = backup.Progress{Expect: func(int64) {}, Done: func(int64) {}}

var (
	contents     = []string{"small", strings.Repeat("0123456789", 30_000)}
	short, other = contents[1][:1000], strings.Repeat("9876543210", 30_000)
)

const folder = "a folder"

func newBackedUp(t *testing.T) backedUp {
	t.Helper()
	s := backedUp{apitest.Begin(t), t.TempDir()}
	for _, content := range contents {
		s.Upload("file=x", content)
	}
	s.backup("the first one", false)
	return s
}

// backup runs a backup, which must name these things.
func (s backedUp) backup(what string, verify bool, damaged ...string) backup.Copied {
	s.Helper()
	got, err := backup.Make(s.Context(), s.Data, s.to, verify, unseen)
	if err != nil || !reflect.DeepEqual(got.Damaged, damaged) {
		s.Errorf("%s: %+v, %v; want %q", what, got, err, damaged)
	}
	return got
}

// record returns the record of one of ann's files.
func (s backedUp) record(id int64) (f files.File) {
	s.Helper()
	for _, area := range blob.Areas() {
		if s.Data.Table.Get(s.Context(), files.Key(area, "ann", id), &f) == nil {
			break
		}
	}
	return f
}

// stored returns the bytes in a data folder by their keys.
func stored(t *testing.T, dir string) map[string]string {
	t.Helper()
	d, err := local.Open(dir, local.Options{Existing: true, NoSync: true})
	expect.NoErr(t, err)
	defer d.Close()
	all := map[string]string{}
	for _, area := range blob.Areas() {
		page, err := d.Disk.List(t.Context(), area, "", blob.MaxList)
		expect.NoErr(t, err)
		for _, o := range page {
			r, err := d.Disk.Open(t.Context(), area, o.Key)
			expect.NoErr(t, err)
			content, err := io.ReadAll(r)
			expect.NoErr(t, errors.Join(err, r.Close()))
			all[string(area)+"/"+o.Key] = string(content)
		}
	}
	return all
}

// change replaces bytes in a data folder, or removes them. A large file is at its path.
func (s backedUp) change(dir string, f files.File, content string) {
	s.Helper()
	d, path := s.Data, filepath.Join(dir, string(f.Area), f.Blob)
	if dir == s.to {
		var err error
		d, err = local.Open(dir, local.Options{Existing: true, NoSync: true})
		expect.NoErr(s.TB, err)
		defer d.Close()
	}
	err := errors.Join(d.Table.Blobs().Delete(s.Context(), f.Area, f.Blob), os.RemoveAll(path))
	switch {
	case err != nil || content == "":
	case content == folder:
		err = os.MkdirAll(filepath.Join(path, folder), 0o700)
	case f.Length < 100:
		err = d.Table.Blobs().Create(s.Context(), f.Area, f.Blob, []byte(content))
	default:
		err = os.WriteFile(path, []byte(content), 0o600)
	}
	expect.NoErr(s.TB, err)
}

// TestABackupHealsItsCopiesAndNamesDamageOnEachRun has rows of a file, its bytes in the data and in the backup after
// the damage, and what a plain run does: it names the file, or has mended the copy. With --verify it names each file
// whose source is damaged.
func TestABackupHealsItsCopiesAndNamesDamageOnEachRun(t *testing.T) {
	t.Parallel()
	const table = `
		a copy is shorter                       | 2 same short   | healed
		a copy is missing                       | 2 same none    | healed
		a folder is in place of a copy          | 2 same folder  | healed
		a copy has other bytes                  | 2 same other   |
		the source is shorter                   | 2 short same   | named, healed
		the source is missing                   | 2 none same    | named, healed
		the source cannot be read               | 2 folder same  | named, healed
		the source has other bytes              | 2 other same   | healed
		the source is bad, and has no copy      | 2 other none   | named
		the source is bad, and its copy shorter | 2 other short  | named
		a small source is missing               | 1 none same    | named, healed
		a small source has other bytes          | 1 others same  | named, healed
		a small copy has other bytes            | 1 same others  | healed
		a small source is bad, without a copy   | 1 others none  | named`
	const same = "same"
	contentOf := map[string]string{
		"short":  short,
		"other":  other,
		"folder": folder,
		"none":   "",
		"others": "other",
		same:     same,
	}
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := strings.Split(row, "|")
		t.Run(strings.TrimSpace(cells[0]), func(t *testing.T) {
			t.Parallel()
			s, words := newBackedUp(t), strings.Fields(cells[1])
			id, source, copied := int64(words[0][0]-'0'), contentOf[words[1]], contentOf[words[2]]
			named, healed := strings.Contains(cells[2], "named"), strings.Contains(cells[2], "healed")
			f, content := s.record(id), contents[id-1]
			for dir, is := range map[string]string{s.Dir: source, s.to: copied} {
				if is != same {
					s.change(dir, f, is)
				}
			}
			key := string(f.Area) + "/" + f.Blob
			run := func(what string, verify, named, good bool) {
				t.Helper()
				s.backup(what, verify, map[bool][]string{true: {fmt.Sprintf("ann/%d x", id)}}[named]...)
				expect.Equal(t, what+": the copy is good", stored(t, s.to)[key] == content, good)
			}
			damaged, whole := source != same, source == same || copied == same
			run("a plain run", false, named, healed)
			run("another one", false, named, healed)
			run("a verification", true, damaged, whole)
			run("a plain run after it", false, damaged, whole)
			bad, err := os.ReadFile(filepath.Join(s.to, "damaged", key))
			if hasBytes := damaged && source != "" && source != folder; hasBytes != (err == nil) ||
				hasBytes && string(bad) != source {
				t.Errorf("the damaged bytes are %.10q, %v", bad, err)
			}
			s.change(s.Dir, f, content)
			run("after the source was mended", false, false, true)
			left, _ := filepath.Glob(filepath.Join(s.to, "damaged", "*", "*", folder))
			_, noFolder := os.Stat(filepath.Join(s.to, "damaged"))
			_, noTable := os.Stat(filepath.Join(s.to, "table.sqlite.kept"))
			if kept := copied == folder; kept != (len(left) == 1) || kept == (noFolder != nil) || noTable == nil {
				t.Errorf("left: %q, %v, %v", left, noFolder, noTable)
			}
		})
	}
}

func (s backedUp) move(id int64) {
	s.Helper()
	s.Ask(fmt.Sprintf("DELETE /files/%d", id), "").Want(200)
}

// TestABackupRemovesNothingWhileSomethingIsWrong moves both files to the other area, so that
// no record names what the earlier backup has.
func TestABackupRemovesNothingWhileSomethingIsWrong(t *testing.T) {
	t.Parallel()
	user, record := users.Key("ann"), files.Key(blob.Backup, "ann", 1)
	for name, c := range map[string]struct {
		want   string
		damage func(s backedUp, link table.Key)
	}{
		"a record cannot be read": {"the item " + record.String() + " cannot be read",
			func(s backedUp, _ table.Key) { s.Spoil(record) }},
		"a record is another file's": {"the item " + record.String() + " cannot be read",
			func(s backedUp, _ table.Key) {
				expect.NoErr(s.TB, s.Data.Table.Write(s.Context(), table.Put(record, s.record(2))))
			}},
		"a link cannot be read": {"the item link#",
			func(s backedUp, link table.Key) { s.Spoil(link) }},
		"a user cannot be read": {"the item user#ann profile cannot be read",
			func(s backedUp, _ table.Key) { s.Spoil(user) }},
		"a user's item has another form": {"the item user#ann profile cannot be read", func(s backedUp, _ table.Key) {
			expect.NoErr(s.TB, s.Data.Table.Write(s.Context(), table.Update(user).Set("lastFile", "x")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBackedUp(t)
			before := stored(t, s.to)
			s.move(1)
			s.move(2)
			f, u, l, link := s.record(1), users.User{}, links.Link{}, table.Key{SK: "link"}
			for key := range s.Partitions("link#") {
				link.PK, _, _ = strings.Cut(key, " ")
			}
			expect.NoErr(
				s.TB,
				errors.Join(s.Data.Table.Get(t.Context(), user, &u), s.Data.Table.Get(t.Context(), link, &l)),
			)
			c.damage(s, link)
			for range 2 {
				got, err := backup.Make(t.Context(), s.Data, s.to, false, unseen)
				if err != nil ||
					len(got.Damaged) != 1 ||
					!strings.Contains(got.Damaged[0], c.want) ||
					got.Removed != 0 {
					t.Errorf("%+v, %v; want %q", got, err, c.want)
				}
				now, moved := stored(t, s.to), s.record(2)
				for key, content := range before {
					expect.Equal(t, key, now[key], content)
				}
				expect.Equal(t, "the rest", now[string(moved.Area)+"/"+moved.Blob], contents[1])
			}
			expect.NoErr(
				s.TB,
				s.Data.Table.Write(t.Context(), table.Put(user, u), table.Put(link, l), table.Put(record, f)),
			)
			if got := s.backup("after it was mended", false); got.Removed != 2 || len(stored(t, s.to)) != 2 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestABackupBesideAnOlderTableRemovesNothing(t *testing.T) {
	t.Parallel()
	s := backedUp{apitest.Begin(t), t.TempDir()}
	path, copied := filepath.Join(s.Dir, "table.sqlite"), filepath.Join(s.to, "table.sqlite")
	reopen := func(content []byte) (before []byte) {
		t.Helper()
		s.Close()
		before, err := os.ReadFile(path)
		if err == nil && content != nil {
			err = os.WriteFile(path, content, 0o600)
		}
		expect.NoErr(s.TB, err)
		s.Caller = apitest.Open(t, s.Dir).Begin()
		return before
	}
	older := reopen(nil)
	s.AddUser("eve", apitest.Password)
	for _, content := range contents {
		s.Upload("file=x", content)
	}
	s.backup("the first one", false)
	before := stored(t, s.to)
	newer := reopen(older)
	for range 2 {
		s.backup("beside an older table", false,
			"the last file id of user ann is 0, but was 2 before", "the user eve is missing, and was not removed")
		expect.Equal(t, "objects", stored(t, s.to), before)
	}
	reopen(newer)
	s.backup("beside the newer table", false)
	expect.NoErr(s.TB, errors.Join(s.Users.Disable(t.Context(), "eve"), s.Users.Remove(t.Context(), "eve")))
	s.backup("after a user was removed", false)
	damaged, err := os.ReadFile(copied)
	copy(damaged[100:], strings.Repeat("no table ", 1000)) // after the header
	expect.NoErr(s.TB, errors.Join(err, os.WriteFile(copied, damaged, 0o600)))
	s.backup("over a damaged backup", false, "the table of the earlier backup")
	s.backup("over a mended backup", false)
	expect.Equal(t, "objects", stored(t, s.to), before)
}

// TestAFileIsRestoredFromABackup damages one of two files beside a running service.
func TestAFileIsRestoredFromABackup(t *testing.T) {
	t.Parallel()
	lose := func(s backedUp, f files.File) { s.change(s.Dir, s.record(f.ID), "") }
	unreadable := func(s backedUp, f files.File) {
		f = s.record(f.ID)
		s.Spoil(files.Key(f.Area, f.Owner, f.ID))
		_, err := backup.Make(s.Context(), s.Data, s.to, false, unseen) // as every night
		expect.NoErr(s.TB, errors.Join(err, os.RemoveAll(filepath.Join(s.Dir, string(f.Area), f.Blob))))
	}
	for name, c := range map[string]struct {
		id     int64
		damage func(s backedUp, f files.File)
		want   error
	}{
		"a large file is lost":      {id: 2, damage: lose},
		"a small file is lost":      {id: 1, damage: lose},
		"a small file is another":   {id: 1, damage: func(s backedUp, f files.File) { s.change(s.Dir, f, "other") }},
		"it has moved since":        {id: 2, damage: func(s backedUp, f files.File) { s.move(2); lose(s, f) }},
		"its record cannot be read": {id: 2, damage: unreadable},
		"and its bytes are others": {
			id:     1,
			damage: func(s backedUp, f files.File) { s.change(s.Dir, f, "other"); unreadable(s, f) },
		},
		"that of one that has moved": {id: 2, damage: func(s backedUp, f files.File) { s.move(2); unreadable(s, f) }},
		"the backup is bad too": {id: 2, damage: func(s backedUp, f files.File) {
			lose(s, f)
			s.change(s.to, f, other)
		}, want: backup.ErrNoFile},
		"its user has removed it": {id: 2, damage: func(s backedUp, f files.File) {
			expect.NoErr(s.TB, s.Data.Table.Write(s.Context(), table.Delete(files.Key(f.Area, f.Owner, f.ID))))
		}, want: backup.ErrNoFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBackedUp(t)
			c.damage(s, s.record(c.id))
			f, err := backup.RestoreFile(t.Context(), s.Data, s.to, "ann", c.id)
			if !errors.Is(err, c.want) ||
				err == nil && stored(t, s.Dir)[string(f.Area)+"/"+f.Blob] != contents[c.id-1] {
				t.Fatalf("%+v, %v", f, err)
			}
			repaired := files.Check{
				Service: s.Service.Files(), Grace: time.Hour,
				Expect: unseen.Expect, Done: unseen.Done, Found: func(f files.Finding) { t.Logf("%+v", f) },
			}
			if r, err := repaired.Run(t.Context()); c.want == nil && (err != nil || r.Found > 0) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestARestoredFileStaysInItsArea restores a file that was moved, beside an item of its old
// area that cannot be read.
func TestARestoredFileStaysInItsArea(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	before := s.record(2)
	s.move(2)
	moved := s.record(2)
	expect.NoErr(t, s.Data.Table.Write(t.Context(), table.Put(files.Key(before.Area, "ann", 2), before)))
	s.Spoil(files.Key(before.Area, "ann", 2))
	s.change(s.Dir, moved, "")
	f, err := backup.RestoreFile(t.Context(), s.Data, s.to, "ann", 2)
	if err != nil || f.Area == before.Area || f.Area != moved.Area {
		t.Errorf("from %s it was restored to %s, %v", moved.Area, f.Area, err)
	}
}

func TestALostTableIsReportedEvenIfAllFilesWereInIt(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.Upload("file=x", "small")
	c.Close()
	key, err := os.ReadFile(filepath.Join(c.Dir, "link.key"))
	expect.NoErr(t, errors.Join(err, os.Remove(filepath.Join(c.Dir, "table.sqlite"))))
	for _, existing := range []bool{true, false} {
		_, err := local.Open(c.Dir, local.Options{Existing: existing, NoSync: true})
		if now, _ := os.ReadFile(filepath.Join(c.Dir, "link.key")); !errors.Is(err, local.ErrNoTable) ||
			!bytes.Equal(now, key) {
			t.Errorf("existing %v: %v", existing, err)
		}
	}
}

// TestARestoreBesideFilesWithoutATableKeepsNewerOnes loses the table alone.
func TestARestoreBesideFilesWithoutATableKeepsNewerOnes(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	s.Upload("file=y", contents[1]+"newer")
	f := s.record(3)
	s.Close()
	for _, end := range []string{"", "-wal", "-shm"} {
		expect.NoErr(t, os.RemoveAll(filepath.Join(s.Dir, "table.sqlite"+end)))
	}
	_, err := backup.Restore(t.Context(), s.to, s.Dir, unseen)
	expect.NoErr(t, err)
	_, err = os.Stat(filepath.Join(s.Dir, string(f.Area), f.Blob))
	expect.NoErr(t, err)
}

// TestASmallFileStaysInABackupWhoseTableHadIt backs up data that has the small file as a file
// to a backup that has it in its table.
func TestASmallFileStaysInABackupWhoseTableHadIt(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	weekly := t.TempDir()
	_, err := backup.Make(t.Context(), s.Data, weekly, false, unseen)
	expect.NoErr(t, err)
	f := s.record(1)
	s.change(s.Dir, f, "")
	s.backup("nightly, damaged", false, "ann/1 x")
	s.Close()
	dir := filepath.Join(t.TempDir(), "new")
	_, err = backup.Restore(t.Context(), s.to, dir, unseen)
	expect.NoErr(t, err)
	_, err = backup.Make(t.Context(), apitest.Open(t, dir).Data, weekly, false, unseen)
	expect.NoErr(t, err)
	expect.Equal(t, "the weekly backup's copy", stored(t, weekly)[string(f.Area)+"/"+f.Blob], contents[0])
}

func TestABackupHasTheWebhookSecretIfThereIsOne(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t)
	copied := filepath.Join(s.to, "webhook.secret")
	if _, err := os.Stat(copied); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a secret: %v", err)
	}
	want, _, err := local.WebhookSecret(s.Dir)
	expect.NoErr(t, err)
	s.backup("with a secret", false)
	got, err := os.ReadFile(copied)
	expect.NoErr(t, err)
	expect.Equal(t, "the copy", string(got), want)
}
