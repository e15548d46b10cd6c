package files_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/table"
	"ferry/shared/users"
)

// lose removes the record of a file, wherever it is.
func (s server) lose(f files.File) { s.write(table.Delete(keyOf(f))) }

// leads returns what a file's own link leads to.
func (s server) leads(f files.File) (files.File, error) {
	l, err := s.Service.Links().Find(s.Context(), f.Area, s.Service.Links().Token(f), "")
	return l.File, err
}

func TestARecordThatOnlyALinkStillHasIsWrittenAgain(t *testing.T) {
	t.Parallel()
	const missing = "record alice %d the record is missing; a link has a copy, from which --repair writes it again %v"
	for name, c := range map[string]struct {
		id     int // of the file
		damage func(checked)
		more   string // that a repair finds besides
		left   string
	}{
		"of a small file":                    {id: 1},
		"of a deleted file with a recipient": {id: 3},
		"of a large file, a day later":       {id: 2, damage: func(s checked) { s.Clock.Advance(26 * time.Hour) }},
		"whose own link is lost too": {id: 3,
			damage: func(s checked) { s.write(table.Delete(s.linkOf(s.sent))) },
			more:   "link alice 3 a link is missing true"},
		"whose bytes are damaged": {id: 2,
			damage: func(s checked) { s.must(os.Truncate(s.path(s.big), 10)) },
			more:   "size alice 2 there are 10 bytes",
			left:   "size alice 2"},
		"whose bytes lie elsewhere": {id: 2,
			damage: func(s checked) { s.misplace(s.big) },
			more:   "bytes alice 2 the bytes are missing; they lie at backup/D2-"},
		"of a user who has lost the last id": {id: 2,
			damage: func(s checked) { s.update(users.Key("alice"), "lastFile", int64(1)) },
			more:   "user alice 0 the last file is 1, but there is a file 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newChecked(t)
			f := []files.File{s.small, s.big, s.sent}[c.id-1]
			s.lose(f)
			if c.damage != nil {
				c.damage(s)
			}
			for _, quick := range []bool{true, false} {
				_, found := s.check(func(c *files.Check) { c.Quick = quick })
				if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), fmt.Sprintf(missing, f.ID, false)) ||
					strings.Contains(strings.Join(found, "\n"), "leftover") {
					t.Errorf("quick %v: a check finds %q", quick, found)
				}
			}
			s.wantFindings("a repair", repairing, sorted(c.more, fmt.Sprintf(missing, f.ID, true))...)
			now, err := s.Service.Files().Get(t.Context(), s.user(f.Owner), f.Area, f.ID)
			s.must(err)
			if now.Name != f.Name || now.Area != f.Area || now.Expires != f.Expires {
				t.Errorf("the record is %+v, want %+v", now, f)
			}
			if to, err := s.leads(now); err != nil || to.Blob != now.Blob {
				t.Errorf("the link leads to %+v, %v", to, err)
			}
			s.wantFindings("a check after the repair", nil, sorted(c.left)...)
		})
	}
}

// sorted sorts the findings that a test expects, of which some may be none.
func sorted(all ...string) []string {
	slices.Sort(all)
	return slices.DeleteFunc(all, func(one string) bool { return one == "" })
}

func TestALinkThatLeadsToNothingIsKeptForAWeek(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(checked)
		finds  []string
	}{
		"its record and its bytes are lost": {func(s checked) {
			s.lose(s.big)
			s.must(s.Data.Disk.Delete(s.Context(), s.big.Area, s.big.Blob))
		}, []string{"quota alice"}},
		"its file has a record in the other area": {func(s checked) {
			s.lose(s.big)
			s.big.Area = blob.Backup
			s.write(table.Put(keyOf(s.big), s.big))
		}, []string{"bytes alice 2"}},
		"its file's user was removed": {func(s checked) {
			s.removeUser("alice")
			for _, f := range []files.File{s.small, s.big, s.sent} {
				s.lose(f)
			}
		}, []string{"link alice 1", "link alice 3", "link alice 3"}},
		"it is none of the file's that it names": {func(s checked) {
			s.lose(s.big)
			var l links.Link
			s.must(s.Data.Table.Get(s.Context(), s.linkOf(s.big), &l))
			s.write(table.Delete(s.linkOf(s.big)), table.Put(table.Key{PK: "link#x", SK: "link"}, l))
		}, []string{"quota alice"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newChecked(t)
			c.damage(s)
			before := s.Partitions("link#")
			s.wantFindings("a repair", repairing, sorted(append(
				c.finds,
				"link alice 2 a link belongs to no file true",
			)...)...)
			kept := func(days int) (n int) {
				s.must(failure(s.Data.Table.DeleteExpired(t.Context(), s.Clock.Now().AddDate(0, 0, days))))
				for key, item := range s.Partitions("removed#link#") {
					expect.Equal(t, key, item, before[strings.TrimPrefix(key, "removed#")])
					n++
				}
				return n
			}
			if n := kept(6); n == 0 {
				t.Error("nothing is kept for a week")
			}
			expect.Equal(t, "what is kept for longer", kept(8), 0)
		})
	}
}

// TestManyLinksWithoutRecordsAreRemovedOnlyWhenAsked has 120 of them, with and without bytes.
func TestManyLinksWithoutRecordsAreRemovedOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	for _, bytes := range []bool{true, false} {
		s := newSweepServer(t)
		for range 120 {
			f := s.put("alice", "content")
			s.lose(f)
			if !bytes {
				s.must(s.Data.Disk.Delete(t.Context(), f.Area, f.Blob))
			}
		}
		r, _ := s.check(repairing)
		if want := map[bool]files.CheckReport{
			true: {Objects: 120, Found: 120, Mended: 120}, false: {Found: 120, Many: 120},
		}[bytes]; r != want {
			t.Errorf("a repair, bytes %v: %+v", bytes, r)
		}
		if n := len(s.keys("link#")); n != 120 {
			t.Errorf("bytes %v: %d links are left", bytes, n)
		}
		if bytes {
			s.wantFindings("after a repair", nil)
			continue
		}
		if r, _ := s.check(removingMany); r.Mended != 120 || len(s.keys("removed#link#")) != 120 {
			t.Errorf("a repair that removes many: %+v", r)
		}
	}
}

// TestBytesThatAnOlderTableCannotKnowAreToldAtOnce has bytes that came this minute.
func TestBytesThatAnOlderTableCannotKnowAreToldAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner string
		id    int64
		want  string
	}{
		"an id above the last one": {
			owner: "alice",
			id:    4,
			want:  "they stay: it is newer than the table: was an older table restored? false",
		},
		"a user whom it lacks": {
			owner: "eve",
			id:    1,
			want:  "they stay: its user is lost, but was not removed false",
		},
		"an id that was given out":  {owner: "alice", id: 3},
		"one of a user who is gone": {owner: "gone", id: 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newChecked(t)
			s.object(blob.Files, s.dated(30, c.id, c.owner))
			for what, change := range map[string]func(*files.Check){"a check": nil, "a repair": repairing} {
				_, got := s.check(change)
				if told := strings.Join(got, "\n"); !strings.Contains(told, c.want) || (told == "") != (c.want == "") {
					t.Errorf("%s finds %q, want %q", what, got, c.want)
				}
			}
		})
	}
}
