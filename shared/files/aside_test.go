package files_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

// aside returns the contents of what was set aside, by day, area and key.
func (s server) aside() map[string]string {
	s.Helper()
	all, dir := map[string]string{}, filepath.Join(s.Dir, "removed")
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*"))
	s.must(err)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		s.must(err)
		rel, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(rel)] = string(content)
	}
	return all
}

// orphans stores leftovers of a user, every second one large, and returns their keys.
func (s server) orphans(owner string, n int) (keys []string) {
	s.Helper()
	for i := range n {
		key := s.dated(-1, int64(i+100), owner)
		keys = append(keys, key)
		_, err := s.Data.Disk.Create(
			s.Context(),
			blob.Files,
			key,
			strings.NewReader([]string{"small", large()}[i%2]),
			-1,
		)
		s.must(err)
	}
	if owner == "alice" {
		s.update(users.Key(owner), "lastFile", int64(n+100))
	}
	s.Clock.Advance(2 * time.Hour)
	return keys
}

func TestWhatARepairOrASweepRemovesStaysAsideForAWeek(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(server){
		"a repair": func(s server) { s.check(repairing) },
		"a sweep":  func(s server) { s.sweep() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSweepServer(t)
			keys := s.orphans("alice", 2)
			day := s.Clock.Now().UTC().Format(time.DateOnly)
			remove(s)
			s.wantObjects(blob.Files)
			for i, content := range []string{"small", large()} {
				at := day + "/files/" + keys[i]
				if all := s.aside(); all[at] != content || len(all) != 2 {
					t.Errorf("%s is not aside, but %d others", at, len(all))
				}
			}
			for days, want := range map[int]int{0: 2, 7: 2} {
				s.Clock.Advance(time.Duration(days) * 24 * time.Hour)
				if s.sweep(); len(s.aside()) != want {
					t.Errorf("after %d days %d are left, want %d", days, len(s.aside()), want)
				}
			}
			s.Clock.Advance(3 * 24 * time.Hour)
			if s.sweep(); len(s.aside()) != 0 {
				t.Errorf("after ten days %d are left", len(s.aside()))
			}
		})
	}
}

// TestManyLeftoversAreRemovedOnlyWhenAsked also has leftovers of a removed user, which do not
// count.
func TestManyLeftoversAreRemovedOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.orphans("gone", 120)
	s.orphans("alice", 101)
	r, _ := s.check(nil)
	if r.Found != 101 || r.Due != 120 || r.Many != 101 {
		t.Errorf("a check reported %+v", r)
	}
	r, all := s.check(repairing)
	if r.Found != 221 || r.Mended != 120 || r.Many != 101 || len(s.Objects(blob.Files)) != 101 {
		t.Errorf("a repair reported %+v, %s", r, all[0])
	}
	r, _ = s.check(removingMany)
	if r.Found != 101 || r.Mended != 101 || len(s.aside()) != 221 {
		t.Errorf("a repair that removes many reported %+v, %d are aside", r, len(s.aside()))
	}
	s.wantFindings("at the end", nil)
}

func TestASweepRemovesAtMost100Leftovers(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.orphans("gone", 120)
	s.orphans("alice", 150)
	if r := s.sweep(); r.Orphans != 220 || r.Kept < 50 {
		t.Errorf("the first sweep reported %+v", r)
	}
	s.Clock.Advance(25 * time.Hour)
	if r := s.sweep(); r.Orphans != 50 || r.Kept != 0 {
		t.Errorf("a sweep a day later reported %+v", r)
	}
}

// TestNothingOfALostUserIsRemoved loses the item of a user, with a file whose time is over in
// both areas and a leftover.
func TestNothingOfALostUserIsRemoved(t *testing.T) {
	t.Parallel()
	for how, lose := range map[string]func(server){
		"no item": func(s server) { s.write(table.Delete(users.Key("alice"))) },
		"no JSON": func(s server) { s.Spoil(users.Key("alice")) },
		"no entry": func(s server) {
			s.write(table.Delete(users.Key("alice")), table.Delete(table.Key{PK: table.UserList, SK: "alice"}))
		},
		"bad entry": func(s server) {
			s.write(table.Delete(users.Key("alice")))
			s.Spoil(table.Key{PK: table.UserList, SK: "alice"})
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSweepServer(t)
			kept, deleted := s.put("alice", "a"), s.put("alice", large())
			s.must(failure(s.Service.Files().Delete(t.Context(), s.user("alice"), deleted.ID)))
			s.orphans("alice", 1)
			lose(s)
			s.Clock.Advance(200 * 24 * time.Hour)
			if r := s.sweep(); r.Moved+r.Purged+r.Orphans != 0 {
				t.Errorf("the sweep reported %+v", r)
			}
			_, found := s.check(removingMany)
			if !slices.ContainsFunc(found, func(f string) bool {
				return strings.Contains(f, "they stay: its user is lost")
			}) {
				t.Errorf("the repair found %q", found)
			}
			if n := len(s.Files()); n != 3 || len(s.aside()) != 0 || kept.ID != 1 {
				t.Errorf("%d objects are left", n)
			}
		})
	}
}

// TestASweepKeepsBytesThatALostFileNeeds puts the bytes of a file where no record names them.
func TestASweepKeepsBytesThatALostFileNeeds(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	f := s.put("alice", large())
	elsewhere := s.dated(-1, f.ID, "alice")
	s.must(s.Data.Disk.Copy(t.Context(), blob.Files, f.Blob, blob.Backup, elsewhere))
	s.must(s.Data.Disk.Delete(t.Context(), blob.Files, f.Blob))
	s.Clock.Advance(2 * time.Hour)
	expect.Equal(t, "leftovers removed", s.sweep().Orphans, 0)
	s.wantFindings("a repair", repairing, "bytes alice 1 the bytes are missing; they lie at backup/"+elsewhere)
	s.wantObjects(blob.Backup)
	s.wantFindings("a check after the repair", nil)
}

// TestAnOlderTableCostsNothing puts a copy of the table beside newer files, among them some
// that have moved since.
func TestAnOlderTableCostsNothing(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	for i := range 3 {
		s.put("alice", large()[i:])
	}
	older := filepath.Join(t.TempDir(), "older")
	s.must(sqlite.CopyFile(t.Context(), filepath.Join(s.Dir, "table.sqlite"), older))
	service := s.Service.Files()
	s.must(failure(service.Delete(t.Context(), s.user("alice"), 1)))
	s.must(failure(service.Delete(t.Context(), s.user("alice"), 2)))
	s.put("alice", large()[3:])
	before := len(s.Files())
	s.Close()
	for _, end := range []string{"-wal", "-shm", ""} {
		s.must(os.RemoveAll(filepath.Join(s.Dir, "table.sqlite"+end)))
	}
	s.must(os.Rename(older, filepath.Join(s.Dir, "table.sqlite")))
	s.Server = apitest.Open(t, s.Dir)
	service = s.Service.Files()
	s.Clock.Advance(2 * time.Hour)
	s.wantFindings("a repair", removingMany,
		"bytes alice 1 the bytes are missing; they lie at backup/", "bytes alice 2 the bytes are missing; they lie at backup/",
		"leftover alice 4 no record names these 99997 bytes; they stay: it is newer than the table")
	if now := len(s.Files()); now != before || len(s.aside()) > 0 {
		t.Errorf("of %d objects %d are left", before, now)
	}
	for id := range int64(3) {
		f, err := service.Get(t.Context(), s.user("alice"), blob.Files, id+1)
		s.must(err)
		content, err := os.ReadFile(s.path(f))
		s.must(err)
		expect.Equal(t, "the bytes are right", string(content) == large()[id:], true)
	}
}
