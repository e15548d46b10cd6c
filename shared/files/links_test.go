package files_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/table"
)

func TestACheckFindsNothingAfterLinksWereChanged(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a&downloads=2&m=x%40example.com", "0123456789")
	k := c.caller()
	for _, request := range []struct{ request, body string }{
		{"POST /files/1/links", `{"password": "open sesame"}`},
		{"PATCH /files/1/links/own", `{"downloads": 3}`},
		{"DELETE /files/1/links/own", ""},
		{"POST /files/1/links/own/renew", ""},
		{"DELETE /files/1/links/own", ""},
		{"PATCH /files/1", `{"name": "b", "expires": "2d"}`},
		{"DELETE /files/1", ""},
		{"POST /files/1/restore", ""},
	} {
		expect.Equal(t, request.request, k.Ask(request.request, request.body).Code <= 201, true)
		if _, found := c.check(nil); len(found) != 0 {
			t.Errorf("after %s: %v", request.request, found)
		}
	}
}

// linkKeys returns the keys of the links that a file has in the table.
func (s server) linkKeys(f files.File) (all []table.Key) {
	s.Helper()
	for _, key := range s.keys("link#") {
		var l links.Link
		s.must(s.Data.Table.Get(s.Context(), key, &l))
		if l.File.ID == f.ID {
			all = append(all, key)
		}
	}
	return all
}

// TestAFileGetsANewKeyForItsBytes uses a file in the backup area, which has two links.
func TestAFileGetsANewKeyForItsBytes(t *testing.T) {
	t.Parallel()
	const elsewhere = "D0-never/3-0000000000000000000003-alice"
	for name, c := range map[string]struct {
		before  func(checked)
		moves   bool // the bytes lie elsewhere, and are moved
		refused bool
	}{
		"the bytes are stored under it": {},
		"the bytes are moved to it":     {moves: true},
		"its record and links are unreadable": {before: func(s checked) {
			for _, key := range append(s.linkKeys(s.sent), keyOf(s.sent)) {
				s.Spoil(key)
			}
		}},
		"its links are missing": {before: func(s checked) {
			for _, key := range s.linkKeys(s.sent) {
				s.write(table.Delete(key))
			}
		}},
		"its key was renewed meanwhile": {
			refused: true,
			before:  func(s checked) { s.update(keyOf(s.sent), "key", int64(2)) },
		},
		"it was moved meanwhile": {
			refused: true,
			before:  func(s checked) { s.update(keyOf(s.sent), "blob", elsewhere) },
		},
		"it was removed meanwhile": {refused: true, before: func(s checked) { s.lose(s.sent) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newChecked(t)
			f, service := s.sent, s.Service.Files()
			objects := len(s.Objects(blob.Backup))
			if c.before != nil {
				c.before(s)
			}
			var from []string
			put := func(f files.File) error {
				return failure(s.Data.Disk.Create(t.Context(), f.Area, f.Blob, strings.NewReader("abc"), -1))
			}
			if c.moves {
				from, put = []string{"files/" + elsewhere}, nil
				s.must(s.Data.Disk.Copy(t.Context(), f.Area, f.Blob, blob.Files, elsewhere))
			}
			now, err := service.Rekey(t.Context(), f, from, put)
			if c.refused {
				if n := len(s.Objects(blob.Backup)); !errors.Is(err, table.ErrCondition) || n != objects {
					t.Errorf("%d objects, %v", n, err)
				}
				return
			}
			s.must(err)
			s.must(service.MoveBytes(t.Context(), now.Owner, now.ID))
			s.must(s.Data.Disk.Delete(t.Context(), f.Area, f.Blob))
			s.wantFindings("at the end", nil)
			if of, err := s.Service.Links().Of(t.Context(), now); err != nil ||
				len(of) != 2 ||
				of[1].File.Blob == f.Blob {
				t.Errorf("%+v, %v", of, err)
			}
		})
	}
}

func (c caller) revoke() {
	c.Helper()
	c.Clock.Advance(time.Minute)
	c.must(failure(c.Data.Ports.Key.Rotate(c.Context(), c.Data.Ports.Table, c.Data.Ports.Random, 1)))
}

func failure[T any](_ T, err error) error { return err }

func TestWhatARenewalOvertakesLeavesNoLinkBehind(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		area blob.Area // where the file was
		left int
		step string
		wait time.Duration
	}{
		"a deletion":              {area: blob.Files, left: 1, step: "delete 1"},
		"a restoration":           {area: blob.Backup, left: 1, step: "restore 1"},
		"a sweep that moves it":   {area: blob.Files, left: 1, step: "sweep", wait: 31 * day},
		"a sweep that removes it": {area: blob.Backup, step: "sweep", wait: 91 * day},
		"a purge":                 {area: blob.Backup, step: "purge 1"},
		"the removal of its user": {area: blob.Files, step: "clear"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			c.caller().Fill(1)
			if k.area == blob.Backup {
				c.ask("DELETE /files/1")
			}
			c.revoke()
			c.Clock.Advance(k.wait)
			c.Calls.Once("table.Write", func() {
				if n, err := c.Service.Links().Renew(t.Context(), 1); n != 1 || err != nil {
					t.Errorf("%d files have new links: %v", n, err)
				}
			})
			c.must((&room{caller: c}).do(k.step))
			c.wantConsistent(k.left)
			for _, f := range c.stored() {
				if text := c.read(f.Area, 1); f.Key != 2 || f.Area == k.area || text != "x" {
					t.Errorf("its link in the %s area has version %d of the key, and gives %q", f.Area, f.Key, text)
				}
			}
		})
	}
}

// TestMovesBesideARenewalLeaveNoLinkBehind lets them race.
func TestMovesBesideARenewalLeaveNoLinkBehind(t *testing.T) {
	t.Parallel()
	const n = 60
	c := newCaller(t)
	c.caller().Fill(n)
	c.revoke()
	s, owner := c.Service.Files(), c.user()
	var all sync.WaitGroup
	all.Go(func() { _, _ = c.Service.Links().Renew(t.Context(), 1) })
	for id := range int64(n) {
		all.Go(func() {
			_, err := s.Delete(t.Context(), owner, id+1)
			if err == nil && id%2 == 0 {
				_, err = s.Restore(t.Context(), owner, id+1)
			}
			if err != nil {
				t.Errorf("file %d: %v", id+1, err)
			}
		})
	}
	all.Wait()
	c.wantConsistent(n)
	for _, f := range c.ask("GET /download/list").Files {
		c.WantStatuses("after the renewal", []string{f.LinkURL}, 200)
	}
	c.wantFindings("after the renewal", nil)
}

func TestAFileThatChangesAllTheTimeIsBusy(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.caller().Fill(1)
	tries := 0
	c.Calls.Before("table.Write", func() error {
		tries++
		return c.Data.Table.Write(t.Context(), table.Update(files.Key(blob.Files, "alice", 1)).Add("key", 5))
	})
	if _, err := c.Service.Files().Delete(t.Context(), c.user(), 1); !errors.Is(err, table.ErrBusy) || tries != 5 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
