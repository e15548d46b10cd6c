package files_test

import (
	"cmp"
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
			all = append(all, fmt.Sprintf("%s %s %d %s %v", f.Kind, f.User, f.ID, f.What, map[bool]any{
				true:  "due",
				false: f.Mended,
			}[f.Due]))
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

// checked is a server whose user alice has a quota and three files: a small one, a large one, and
// one in the backup area with a recipient.
type checked struct {
	server
	small, big, sent files.File
}

func newChecked(t *testing.T) checked {
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
	return checked{s, small, big, sent.File}
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
	for name, c := range map[string]struct {
		damage func(checked)
		finds  string // with a zero byte between two findings
		// mends is what a repair finds, which then leaves nothing. If it is empty, the repair finds the same, and so does a
		// check after it.
		mends string
		bytes bool // only a check that reads the bytes finds it
	}{
		"the bytes of a small file are missing": {
			damage: func(s checked) {
				s.must(s.Data.Table.Blobs().Delete(s.Context(), s.small.Area, s.small.Blob))
			},
			finds: "bytes alice 1 the bytes are missing false",
		},
		"the bytes cannot be read": {damage: checked.bury, finds: "bytes alice 2 the bytes cannot be read: "},
		"a file is shorter": {
			damage: func(s checked) { s.must(os.Truncate(s.path(s.big), 10)) },
			finds:  "size alice 2 there are 10 bytes, but the record says 100000 false",
		},
		"a byte is another": {
			damage: func(s checked) {
				content, err := os.ReadFile(s.path(s.big))
				s.must(err)
				content[5000] ^= 1
				s.must(os.WriteFile(s.path(s.big), content, 0o600))
			},
			finds: "checksum alice 2 the CRC64NVME is", bytes: true,
		},
		"a link is missing": {
			damage: func(s checked) {
				for _, key := range s.linkKeys(s.sent) {
					if key != s.linkOf(s.sent) {
						s.write(table.Delete(key))
					}
				}
			},
			finds: "link alice 3 a link is missing false",
			mends: "link alice 3 a link is missing true",
		},
		"a link differs": {
			damage: func(s checked) {
				var l links.Link
				s.must(s.Data.Table.Get(s.Context(), s.linkOf(s.small), &l))
				l.File.Length++
				s.write(table.Put(s.linkOf(s.small), l))
			},
			finds: "link alice 1 a link differs from the record false",
			mends: "link alice 1 a link differs from the record true",
		},
		"a record is another file's": {
			damage: func(s checked) { s.write(table.Put(files.Key(blob.Files, "alice", 3), s.small)) },
			finds:  "record alice 3 the record is damaged false",
		},
		"a record is no JSON": {
			damage: func(s checked) { s.Spoil(keyOf(s.big)) },
			finds:  "record alice 2 the record is damaged; a link has a copy, from which --repair writes it again false",
			mends:  "record alice 2 the record is damaged; a link has a copy, from which --repair writes it again true",
		},
		"a record and its link are no JSON": {
			damage: func(s checked) {
				s.Spoil(keyOf(s.big))
				s.Spoil(s.linkOf(s.big))
			},
			finds: "link  0 the link cannot be read false\x00record alice 2 the record is damaged false",
		},
		"a link is no JSON": {
			damage: func(s checked) { s.Spoil(s.linkOf(s.sent)) },
			finds:  "link  0 the link cannot be read false",
			mends:  "link alice 3 a link cannot be read true",
		},
		"another item is no JSON": {
			damage: func(s checked) {
				s.write(table.Put(table.Key{PK: "receipt#alice", SK: "x"}, s.small))
				s.Spoil(table.Key{PK: "receipt#alice", SK: "x"})
			},
			finds: "item  0 the item cannot be read false",
		},
		"a user's item is gone": {
			damage: func(s checked) { s.write(table.Delete(users.Key("alice"))) },
			finds:  "user alice 0 the user is missing or cannot be read, but was not removed; their files stay: ",
		},
		"a user's item is no JSON": {
			damage: func(s checked) { s.Spoil(users.Key("alice")) },
			finds:  "ferry user add alice --with-files false",
		},
		"the record of a moved file names other bytes": {
			damage: func(s checked) {
				s.update(keyOf(s.sent), "blob", s.dated(60, 3, "alice"))
				s.Clock.Advance(2 * time.Hour)
			},
			finds: "bytes alice 3 the bytes are missing; the record is wrong\x00leftover alice 3",
			mends: "from which --repair writes it again true",
		},
		"bytes cannot be read, and others of the same owner and id are left": {
			damage: func(s checked) {
				s.bury()
				s.object(blob.Backup, s.dated(9, 2, "alice"))
				s.Clock.Advance(2 * time.Hour)
			},
			finds: "bytes alice 2 the bytes cannot be read\x00leftover alice 2 no record names these 9 bytes; they stay",
		},
		"a user's last file is below the files": {
			damage: func(s checked) { s.update(users.Key("alice"), "lastFile", int64(1)) },
			finds:  "user alice 0 the last file is 1, but there is a file 3; was an older table restored? false",
			mends:  "user alice 0 the last file is 1",
		},
		"a move's new place is known and the bytes lie at another": {
			damage: func(s checked) { s.misplace(s.big) },
			finds:  "bytes alice 2 the bytes are missing; they lie at backup/D2-",
			mends:  "gives them back true",
		},
		"the quota is wrong": {
			damage: func(s checked) { s.update(users.Key("alice"), "used", int64(5)) },
			finds:  "quota alice 0 5 bytes count as used, but files and reservations have 100010 false",
			mends:  "100010 true",
		},
		"an object has no record": {
			damage: func(s checked) {
				s.orphan(blob.Backup, kept("alice", 9))
				s.Clock.Advance(2 * time.Hour)
			},
			finds: "leftover alice 9 no record names these 9 bytes; they will be removed within 30 days due",
			mends: "leftover alice 9 no record names these 9 bytes true",
		},
		"an object whose day is to come has no record": {
			damage: func(s checked) {
				s.orphan(blob.Backup, s.dated(2, 3, "alice"))
				s.Clock.Advance(2 * time.Hour)
			},
			finds: "no record names these 9 bytes; they will be removed on 20",
			mends: "leftover alice 3 no record names these 9 bytes true",
		},
		"a link is of an earlier record of its file": {
			damage: func(s checked) {
				s.write(table.Put(table.Key{PK: "link#x", SK: "link"}, links.Link{File: s.small}))
			},
			finds: "link alice 1 a link belongs to no file false",
			mends: "link alice 1 a link belongs to no file true",
		},
		"a temporary file and parts are left": {
			damage: func(s checked) {
				tmp, parts := filepath.Join(s.Dir, "tmp", rand.Text()), filepath.Join(s.Dir, "parts", rand.Text())
				s.must(errors.Join(os.WriteFile(tmp, []byte("half"), 0o600), os.MkdirAll(parts, 0o700)))
				for path, age := range map[string]time.Duration{
					tmp:   2 * time.Hour,
					parts: blob.PartsLife + 2*time.Hour,
				} {
					then := s.Clock.Now().Add(-age)
					s.must(os.Chtimes(path, then, then))
				}
			},
			finds: "leftover  0 an interrupted request left this; it will be removed by the next sweep due\x00leftover",
			mends: "leftover  0 an interrupted request left this true\x00leftover",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newChecked(t)
			c.damage(s)
			split := func(text string) []string { return sorted(strings.Split(text, "\x00")...) }
			objects := len(s.Files())
			found, quick, left := split(c.finds), split(c.finds), split(c.finds)
			if c.bytes {
				quick = nil
			}
			if c.mends != "" {
				left = nil
			}
			s.wantFindings("a check", nil, found...)
			s.wantFindings("a quick check", func(c *files.Check) { c.Quick = true }, quick...)
			s.wantFindings("a repair", repairing, split(cmp.Or(c.mends, c.finds))...)
			s.wantFindings("a check after the repair", nil, left...)
			if now := len(s.Files()); now != objects && !strings.Contains(c.mends, "leftover") {
				t.Errorf("of %d objects %d are left", objects, now)
			}
		})
	}
}

// bury puts a folder in the place of the large file, which then cannot be read.
func (s checked) bury() {
	s.must(os.Remove(s.path(s.big)))
	s.must(os.Mkdir(s.path(s.big), 0o700))
}

// misplace moves the bytes of a file to where no record names them.
func (s server) misplace(f files.File) {
	s.must(s.Data.Disk.Copy(s.Context(), f.Area, f.Blob, blob.Backup, s.dated(9, f.ID, "alice")))
	s.must(s.Data.Disk.Delete(s.Context(), f.Area, f.Blob))
}

// TestARepairedLinkKeepsItsCounts lets a link that was used differ from its record.
func TestARepairedLinkKeepsItsCounts(t *testing.T) {
	t.Parallel()
	s := newChecked(t)
	service := s.Service.Links()
	l, err := service.Find(t.Context(), blob.Files, service.Token(s.small), "")
	s.must(err)
	err = service.Used(t.Context(), l, links.Used{Whole: true, Source: "a source"})
	s.must(err)
	service.Flush(t.Context())
	renamed := s.small
	renamed.Name = "renamed"
	s.write(table.Put(keyOf(renamed), renamed))
	s.wantFindings("a repair", repairing, "link alice 1 a link differs")
	l, err = service.Find(t.Context(), blob.Files, service.Token(s.small), "")
	if err != nil || l.File.Name != "renamed" || l.Downloads != 1 {
		t.Errorf("the link is %+v, %v", l, err)
	}
	s.wantFindings("a check after the repair", nil)
}

func TestARepairedLinkWorksAgain(t *testing.T) {
	t.Parallel()
	s := newChecked(t)
	for _, key := range s.keys("link#") {
		s.write(table.Delete(key))
	}
	s.wantFindings("a repair", repairing, "link alice 1", "link alice 2", "link alice 3", "link alice 3")
	if to, err := s.leads(s.small); err != nil || to.Blob != s.small.Blob {
		t.Errorf("the link leads to %+v, %v", to, err)
	}
	uses, err := s.Service.Links().Of(t.Context(), s.sent)
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
	s := newChecked(t)
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
	s := newChecked(t)
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
