package files_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/table"
)

// newest returns the caller's newest file in the user area.
func (c caller) newest() files.File {
	c.Helper()
	page, err := file.Service(c.Data.Ports).List(c.Context(), c.user(), blob.Files, 0, 1)
	if err != nil || len(page.Files) != 1 {
		c.Fatalf("listing: %v, %v", page, err)
	}
	return page.Files[0].File
}

// sendToTwo uploads a file for two recipients and returns it.
func (c caller) sendToTwo(query string) files.File {
	c.Helper()
	c.put("file=a&c=%2B393401234567&m=carla@example.com"+query, "content")
	return c.newest()
}

// links returns the paths of a file's own link and of the recipients' links.
func (c caller) links(f files.File) []string {
	all := []string{"/download/file?k=" + c.Data.Ports.Key.File(f.Area, f.Owner, f.ID)}
	for _, id := range f.Recipients {
		all = append(all, "/download/file?k="+c.Data.Ports.Key.Recipient(f.Area, f.Owner, f.ID, id))
	}
	return all
}

func (c caller) wantStatuses(when string, paths []string, status int) {
	c.Helper()
	for i, path := range paths {
		if got, _ := c.get(path); got != status {
			c.Errorf("%s link %d gave status %d, want %d", when, i, got, status)
		}
	}
}

// newKeyCaller starts a service with some files, whose link key the test may change.
func newKeyCaller(t *testing.T, files int) caller {
	t.Helper()
	c := newCaller(t)
	c.InProcess("it changes the key of all links")
	c.caller().Fill(files)
	return c
}

func (c caller) revoke() {
	c.Helper()
	c.Clock.Advance(time.Minute)
	c.must(failure(c.Data.Ports.ChangeKey(c.Context(), 1)))
}

// overtaking runs a renewal when something else has read a file's record, and is about to
// make the file invisible or to renew its links too.
type overtaking struct {
	table.Table
	once  sync.Once
	other func()
}

func (o *overtaking) Write(ctx context.Context, ops ...table.Op) error {
	if ops[0].Kind == table.KindDelete {
		o.once.Do(o.other)
	}
	return o.Table.Write(ctx, ops...)
}

// overtaken returns the caller's domain, into which a renewal comes once.
func (c caller) overtaken() *files.Service {
	return c.service(&overtaking{Table: c.Data.Table, other: func() {
		if n, err := file.Links(c.Data.Ports).Renew(c.Context(), 1); n != 1 || err != nil {
			c.Errorf("%d files have new links: %v", n, err)
		}
	}})
}

func failure[T any](_ T, err error) error { return err }

func TestWhatARenewalOvertakesLeavesNoLinkBehind(t *testing.T) {
	t.Parallel()
	sweep := func(after time.Duration) func(caller, *files.Service) error {
		return func(c caller, s *files.Service) error {
			c.Clock.Advance(after)
			return failure((&files.Sweeper{Service: s, Grace: 2 * after}).Run(c.Context()))
		}
	}
	for what, k := range map[string]struct {
		area blob.Area // where the file was
		left int
		do   func(caller, *files.Service) error
	}{
		"a deletion":              {blob.Files, 1, func(c caller, s *files.Service) error { return failure(s.Delete(c.Context(), c.user(), 1)) }},
		"a restoration":           {blob.Backup, 1, func(c caller, s *files.Service) error { return failure(s.Restore(c.Context(), c.user(), 1)) }},
		"a sweep that moves it":   {blob.Files, 1, sweep(31 * day)},
		"a sweep that removes it": {blob.Backup, 0, sweep(91 * day)},
		"a purge":                 {blob.Backup, 0, func(c caller, s *files.Service) error { return s.Purge(c.Context(), c.user(), 1) }},
		"the removal of its user": {blob.Files, 0, func(c caller, s *files.Service) error { return failure(s.RemoveAll(c.Context(), c.name)) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newKeyCaller(t, 1)
			if k.area == blob.Backup {
				c.call("DELETE", "/files/1")
			}
			c.revoke()
			c.must(k.do(c, c.overtaken()))
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
	c := newKeyCaller(t, n)
	c.revoke()
	s, owner := file.Service(c.Data.Ports), c.user()
	var all sync.WaitGroup
	all.Go(func() { _, _ = file.Links(c.Data.Ports).Renew(t.Context(), 1) })
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
	_, list := c.call("GET", "/download/list")
	for _, f := range list.Files {
		c.wantStatuses("after the renewal", []string{f.LinkURL}, 200)
	}
	c.wantFindings("after the renewal", nil)
}

func TestAFileThatChangesAllTheTimeIsBusy(t *testing.T) {
	t.Parallel()
	c := newKeyCaller(t, 1)
	tries := 0
	c.Calls.Before("table.Write", func() error {
		tries++
		return c.Data.Table.Write(t.Context(), table.Update(files.Key(blob.Files, "alice", 1)).Add("key", 5))
	})
	if _, err := file.Service(c.Data.Ports).Delete(t.Context(), c.user(), 1); !errors.Is(err, table.ErrBusy) || tries != 5 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
