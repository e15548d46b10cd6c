package files_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

// check runs a check and returns its findings, sorted, each as "kind user id what".
func (s server) check(change func(*files.Check)) (files.CheckReport, []string) {
	s.Helper()
	all := []string{}
	c := files.Check{
		Service: s.Service.Files(), Grace: time.Hour,
		Expect: func(int64) {}, Done: func(int64) {},
		Found: func(f files.Finding) {
			all = append(all, fmt.Sprintf("%s %s %d %s %v", f.Kind, f.User, f.ID, f.What, map[bool]any{true: "due", false: f.Mended}[f.Due]))
		},
	}
	if change != nil {
		change(&c)
	}
	r, err := c.Run(s.Context())
	if err != nil || r.Found+r.Due != len(all) {
		s.Fatalf("the check reported %+v, %v", r, err)
	}
	slices.Sort(all)
	return r, all
}

func repairing(c *files.Check) { c.Repair = true }

func removingMany(c *files.Check) { c.Repair, c.RemoveMany = true, true }

// wantFindings checks what a check finds. Each finding must contain what is wanted.
func (s server) wantFindings(what string, change func(*files.Check), want ...string) {
	s.Helper()
	_, got := s.check(change)
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		s.Errorf("%s: the findings are\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// large is the content of a file that is not kept in the table.
func large() string { return strings.Repeat("0123456789", 10_000) }

// newChecked returns a server whose user alice has a quota and three files: a small one,
// a large one, and one in the backup area with a recipient.
func newChecked(t *testing.T) (server, []files.File) {
	t.Helper()
	s := newSweepServer(t)
	s.update(users.Key("alice"), "quota", int64(1<<30))
	small, big := s.put("alice", "content"), s.put("alice", large())
	up, err := s.Service.Files().Begin(t.Context(), "alice", s.by("alice"), 3,
		files.Sending{Recipients: []files.Message{{Channel: files.Mail, To: "ann@example.com"}}})
	s.must(err)
	s.must(up.Add(t.Context(), files.Part{Name: "sent", Body: strings.NewReader("abc"), Size: 3}))
	s.must(failure(up.Commit(t.Context(), 0)))
	sent, err := s.Service.Files().Delete(t.Context(), s.user("alice"), 3)
	s.must(err)
	s.wantFindings("whole data", nil)
	return s, []files.File{small, big, sent.File}
}

func (s server) update(key table.Key, attr string, value any) {
	s.Helper()
	s.write(table.Update(key).Set(attr, value))
}

func (s server) write(ops ...table.Op) {
	s.Helper()
	s.must(s.Data.Table.Write(s.Context(), ops...))
}

// path returns where the bytes of a large file are.
func (s server) path(f files.File) string { return filepath.Join(s.Dir, string(f.Area), f.Blob) }

func (s server) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// linkOf returns the key of a file's own link.
func (s server) linkOf(f files.File) table.Key {
	return table.Key{PK: "link#" + keys.HashToken(s.Service.Links().Token(f)), SK: "link"}
}

func TestEachKindOfDamageIsFound(t *testing.T) {
	t.Parallel()
	flip := func(s server, f files.File) {
		content, err := os.ReadFile(s.path(f))
		s.must(err)
		content[5000] ^= 1
		s.must(os.WriteFile(s.path(f), content, 0o600))
	}
	for name, c := range map[string]struct {
		damage       func(server, []files.File)
		want, mended string // in check and in repair
		quick, left  string // in a quick check, and in a check after the repair
	}{
		"the bytes of a small file are missing": {
			func(s server, all []files.File) {
				s.must(s.Data.Table.Blobs().Delete(s.Context(), all[0].Area, all[0].Blob))
			},
			"bytes alice 1 the bytes are missing false", "bytes alice 1 the bytes are missing false", "bytes", "bytes",
		},
		"the bytes cannot be read": {
			func(s server, all []files.File) {
				s.must(os.Remove(s.path(all[1])))
				s.must(os.Mkdir(s.path(all[1]), 0o700))
			},
			"bytes alice 2 the bytes cannot be read: ", "bytes alice 2", "bytes alice 2 the bytes cannot be read: ", "bytes",
		},
		"a file is shorter": {
			func(s server, all []files.File) { s.must(os.Truncate(s.path(all[1]), 10)) },
			"size alice 2 there are 10 bytes, but the record says 100000 false", "size alice 2", "size", "size",
		},
		"a byte is another": {
			func(s server, all []files.File) { flip(s, all[1]) },
			"checksum alice 2 the CRC64NVME is", "checksum alice 2", "", "checksum",
		},
		"a link is missing": {
			func(s server, all []files.File) {
				for _, key := range s.linkKeys(all[2]) {
					if key != s.linkOf(all[2]) {
						s.write(table.Delete(key))
					}
				}
			},
			"link alice 3 a link is missing false", "link alice 3 a link is missing true", "link", "",
		},
		"a link differs": {
			func(s server, all []files.File) {
				var l links.Link
				s.must(s.Data.Table.Get(s.Context(), s.linkOf(all[0]), &l))
				l.File.Length++
				s.write(table.Put(s.linkOf(all[0]), l))
			},
			"link alice 1 a link differs from the record false", "link alice 1 a link differs from the record true", "link", "",
		},
		"a record is another file's": {
			func(s server, all []files.File) { s.write(table.Put(files.Key(blob.Files, "alice", 3), all[0])) },
			"record alice 3 the record is damaged false", "record", "record", "record",
		},
		"a record is no JSON": {
			func(s server, all []files.File) { s.Spoil(files.Key(blob.Files, "alice", 2)) },
			"record alice 2 the record is damaged; a link has a copy", "record alice 2 the record is damaged; a link has a copy, from which --repair writes it again true",
			"record", "",
		},
		"a record and its link are no JSON": {
			func(s server, all []files.File) {
				s.Spoil(files.Key(blob.Files, "alice", 2))
				s.Spoil(s.linkOf(all[1]))
			},
			"link  0 the link cannot be read false\x00record alice 2 the record is damaged false", "link\x00record", "link\x00record", "link\x00record",
		},
		"a link is no JSON": {
			func(s server, all []files.File) { s.Spoil(s.linkOf(all[2])) },
			"link  0 the link cannot be read false", "link alice 3 a link cannot be read true", "link", "",
		},
		"another item is no JSON": {
			func(s server, all []files.File) {
				s.write(table.Put(table.Key{PK: "receipt#alice", SK: "x"}, all[0]))
				s.Spoil(table.Key{PK: "receipt#alice", SK: "x"})
			},
			"item  0 the item cannot be read false", "item", "item", "item",
		},
		"a user's item is gone": {
			func(s server, all []files.File) { s.write(table.Delete(users.Key("alice"))) },
			"user alice 0 the user is missing or cannot be read, but was not removed; their files stay: ", "user", "user", "user",
		},
		"a user's item is no JSON": {
			func(s server, all []files.File) { s.Spoil(users.Key("alice")) },
			"ferry user add alice --with-files false", "user", "user", "user",
		},
		"the record of a moved file names other bytes": {
			func(s server, all []files.File) {
				s.update(files.Key(blob.Backup, "alice", 3), "blob", s.dated(60, 3, "alice"))
				s.Clock.Advance(2 * time.Hour)
			},
			"bytes alice 3 the bytes are missing; the record is wrong\x00leftover alice 3", "from which --repair writes it again true", "bytes\x00leftover", "",
		},
		"bytes cannot be read, and others of the same owner and id are left": {
			func(s server, all []files.File) {
				s.must(os.Remove(s.path(all[1])))
				s.must(os.Mkdir(s.path(all[1]), 0o700))
				s.object(blob.Backup, s.dated(9, 2, "alice"))
				s.Clock.Advance(2 * time.Hour)
			},
			"bytes alice 2 the bytes cannot be read\x00leftover alice 2 no record names these 9 bytes; they stay", "bytes\x00leftover", "bytes\x00leftover", "bytes\x00leftover",
		},
		"a user's last file is below the files": {
			func(s server, all []files.File) { s.update(users.Key("alice"), "lastFile", int64(1)) },
			"user alice 0 the last file is 1, but there is a file 3; was an older table restored? false", "user alice 0 the last file is 1", "user", "",
		},
		"a move's new place is known and the bytes lie at another": {
			func(s server, all []files.File) {
				s.must(s.Data.Disk.Copy(s.Context(), blob.Files, all[1].Blob, blob.Backup, s.dated(9, 2, "alice")))
				s.must(s.Data.Disk.Delete(s.Context(), blob.Files, all[1].Blob))
			},
			"bytes alice 2 the bytes are missing; they lie at backup/D2-", "gives them back true", "bytes", "",
		},
		"the quota is wrong": {
			func(s server, _ []files.File) { s.update(users.Key("alice"), "used", int64(5)) },
			"quota alice 0 5 bytes count as used, but files and reservations have 100010 false", "100010 true", "quota", "",
		},
		"an object has no record": {
			func(s server, _ []files.File) {
				s.orphan(blob.Backup, kept("alice", 9))
				s.Clock.Advance(2 * time.Hour)
			},
			"leftover alice 9 no record names these 9 bytes; they will be removed within 30 days due", "leftover alice 9 no record names these 9 bytes true", "leftover", "",
		},
		"an object whose day is to come has no record": {
			func(s server, _ []files.File) {
				s.orphan(blob.Backup, s.dated(2, 3, "alice"))
				s.Clock.Advance(2 * time.Hour)
			},
			"no record names these 9 bytes; they will be removed on 20", "leftover alice 3 no record names these 9 bytes true", "leftover", "",
		},
		"a link is of an earlier record of its file": {
			func(s server, all []files.File) {
				s.write(table.Put(table.Key{PK: "link#x", SK: "link"}, links.Link{File: all[0]}))
			},
			"link alice 1 a link belongs to no file false", "link alice 1 a link belongs to no file true", "link", "",
		},
		"a temporary file and parts are left": {
			func(s server, _ []files.File) {
				tmp, parts := filepath.Join(s.Dir, "tmp", rand.Text()), filepath.Join(s.Dir, "parts", rand.Text())
				s.must(errors.Join(os.WriteFile(tmp, []byte("half"), 0o600), os.MkdirAll(parts, 0o700)))
				for path, age := range map[string]time.Duration{tmp: 2 * time.Hour, parts: blob.PartsLife + 2*time.Hour} {
					then := s.Clock.Now().Add(-age)
					s.must(os.Chtimes(path, then, then))
				}
			},
			"leftover  0 an interrupted request left this; it will be removed by the next sweep due\x00leftover", "leftover  0 an interrupted request left this true\x00leftover",
			"leftover\x00leftover", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, all := newChecked(t)
			c.damage(s, all)
			split := func(text string) []string { return sorted(strings.Split(text, "\x00")...) }
			objects := len(s.Files())
			s.wantFindings("a check", nil, split(c.want)...)
			s.wantFindings("a quick check", func(c *files.Check) { c.Quick = true }, split(c.quick)...)
			s.wantFindings("a repair", repairing, split(c.mended)...)
			s.wantFindings("a check after the repair", nil, split(c.left)...)
			if now := len(s.Files()); now != objects && !strings.Contains(c.mended, "leftover") {
				t.Errorf("of %d objects %d are left", objects, now)
			}
		})
	}
}

// TestARepairedLinkKeepsItsCounts lets a link that was used differ from its record.
func TestARepairedLinkKeepsItsCounts(t *testing.T) {
	t.Parallel()
	s, all := newChecked(t)
	service := s.Service.Links()
	l, err := service.Find(t.Context(), blob.Files, service.Token(all[0]), "")
	s.must(err)
	err = service.Used(t.Context(), l, links.Used{Whole: true, Source: "a source"})
	s.must(err)
	service.Flush(t.Context())
	renamed := all[0]
	renamed.Name = "renamed"
	s.write(table.Put(files.Key(blob.Files, "alice", 1), renamed))
	s.wantFindings("a repair", repairing, "link alice 1 a link differs")
	l, err = service.Find(t.Context(), blob.Files, service.Token(all[0]), "")
	if err != nil || l.File.Name != "renamed" || l.Downloads != 1 {
		t.Errorf("the link is %+v, %v", l, err)
	}
	s.wantFindings("a check after the repair", nil)
}

func TestARepairedLinkWorksAgain(t *testing.T) {
	t.Parallel()
	s, all := newChecked(t)
	for _, key := range s.keys("link#") {
		s.write(table.Delete(key))
	}
	s.wantFindings("a repair", repairing, "link alice 1", "link alice 2", "link alice 3", "link alice 3")
	if to, err := s.leads(all[0]); err != nil || to.Blob != all[0].Blob {
		t.Errorf("the link leads to %+v, %v", to, err)
	}
	uses, err := s.Service.Links().Of(t.Context(), all[2])
	if err != nil || len(uses) != 2 || uses[1].Recipient == "" {
		t.Errorf("the recipient's link is %+v, %v", uses, err)
	}
	s.wantFindings("a check after the repair", nil)
}

// unfinishedFiles hides what uploads that still run have written so far.
type unfinishedFiles struct{ blob.Store }

func (unfinishedFiles) Sweep(context.Context, time.Time, func(string) bool) (int, error) {
	return 0, nil
}

// waiting is a table where a check, before it looks again at a leftover, waits until no
// request is under way that was before.
type waiting struct {
	table.Table
	busy *sync.RWMutex
}

func (t waiting) Get(ctx context.Context, key table.Key, into any) error {
	if strings.HasPrefix(key.PK, "upload#") {
		t.busy.Lock()
		defer t.busy.Unlock()
	}
	return t.Table.Get(ctx, key, into)
}

// TestNothingIsReportedWhileFilesComeAndGo checks and repairs data of which uploads,
// moves and purges change all the time.
func TestNothingIsReportedWhileFilesComeAndGo(t *testing.T) {
	t.Parallel()
	s, _ := newChecked(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	own := s.Service.Files()
	var wg sync.WaitGroup
	var busy sync.RWMutex
	for range 3 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				busy.RLock()
				f := s.put("alice", []string{"content", large()}[i%2])
				u := s.user("alice")
				_, err := own.Delete(t.Context(), u, f.ID)
				if err == nil && i%3 == 0 {
					_, err = own.Restore(t.Context(), u, f.ID)
				} else if err == nil {
					err = own.Purge(t.Context(), u, f.ID)
				}
				if err != nil {
					t.Error(err)
				}
				busy.RUnlock()
			}
		})
	}
	p := s.Data.Ports
	p.Table = waiting{p.Table, &busy}
	checked := service.New(p, s.Service.Settings).Files()
	for i := range 6 {
		s.wantFindings(fmt.Sprint("check ", i), func(c *files.Check) {
			c.Service = checked
			if i%2 == 1 {
				c.Repair = true
			} else {
				c.Grace = -time.Hour // so that each object without a record could be a leftover
				c.Blobs = unfinishedFiles{c.Blobs}
			}
		})
	}
	cancel()
	wg.Wait()
	s.wantFindings("at the end", nil)
}

// TestAQuotaIsCorrectedExactly puts quotas right while uploads and purges go on.
func TestAQuotaIsCorrectedExactly(t *testing.T) {
	t.Parallel()
	s, _ := newChecked(t)
	service := s.Service.Files()
	for round := range 5 {
		s.write(table.Update(users.Key("alice")).Add("used", -5000))
		for mended, beside := 0, 5; mended == 0; beside-- { // a check that an upload disturbs leaves it to a later one
			var wg sync.WaitGroup
			wg.Go(func() {
				for range beside {
					f := s.put("alice", "content")
					u := s.user("alice")
					if _, err := service.Delete(t.Context(), u, f.ID); err != nil {
						t.Error(err)
					}
					if f.ID%2 == 0 {
						s.must(service.Purge(t.Context(), u, f.ID))
					}
				}
			})
			r, _ := s.check(repairing)
			wg.Wait()
			mended = r.Mended
			if mended == 0 && beside == 0 {
				t.Fatal("nothing disturbs a check, and it does not correct the quota")
			}
		}
		s.wantFindings(fmt.Sprint("round ", round), nil)
	}
}
