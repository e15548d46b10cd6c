package file_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
)

// newPurging returns a service with a file of alice, who has a quota, in the backup area.
func newPurging(t *testing.T) sharer {
	t.Helper()
	s := sharer{Server: apitest.New(t)}
	s.AddUser("alice", password, func(u *auth.User) { u.Quota = 1000 })
	s.bearer = s.Login("alice", password)
	s.Put(s.bearer, "file=x&notify=1", "content")
	s.backUp("1")
	return s
}

// wantNothing checks that nothing is left of alice's file, and that its room is free.
func (s sharer) wantNothing() {
	s.Helper()
	s.awaitMovers(func() bool { return len(s.Files()) == 0 })
	left := s.Files()
	for _, prefix := range []string{"files#", "backup#", "link#", "receipt#"} {
		for key := range s.Partitions(prefix) {
			left = append(left, key)
		}
	}
	if len(left) > 0 {
		s.Errorf("these are left: %q", left)
	}
	s.wantUse(0)
}

func (s sharer) wantUse(want int64) {
	s.Helper()
	if u, err := s.Users.Get(s.Context(), "alice"); err != nil || u.Used != want {
		s.Errorf("alice uses %d bytes, want %d (%v)", u.Used, want, err)
	}
}

func TestAPurgedFileIsGoneAndItsRoomIsFree(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	s.wantUse(7) // the backup area counts too
	for _, when := range []string{"once", "repeated"} {
		if e := s.ask("DELETE /files/1?area=backup", 200); e.User != "alice" || len(e.Files) != 0 {
			t.Errorf("%s: the answer is %+v", when, e)
		}
		s.wantNothing()
	}
	s.ask("POST /files/1/restore", 404)
}

func TestOnlyTheOwnersFilesInTheBackupAreaArePurged(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	s.AddUser("bob", password)
	s.put("y", "more")
	auth, bob := "Bearer "+s.bearer, apitest.Basic("bob", password)
	for _, c := range []struct {
		path, auth string
		status     int
	}{
		{"/files/1?area=backup", "", 401}, {"/files/1?area=backup", bob, 404}, {"/files/1?area=x", auth, 400},
		{"/files/2?area=backup", auth, 404}, // it is in the user area
		{"/files/3?area=backup", auth, 404}, // there never was one
		{"/files/0?area=backup", auth, 400}, {"/files/1?area=%zz", auth, 400},
		{"/files/2?area=files", auth, 200},
	} {
		s.Decode(s.Request("DELETE", c.path, nil, "Authorization", c.auth), c.status)
	}
	if list := s.ask("GET /download/list/backup", 200); len(list.Files) != 2 {
		t.Errorf("the backup area has %+v", list.Files)
	}
}

func TestAFilePurgedAndRestoredAtOnceIsWholeOrGone(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	for range 10 {
		var wg sync.WaitGroup
		for _, c := range []string{"DELETE /files/1?area=backup", "POST /files/1/restore", "DELETE /files/1"} {
			method, path, _ := strings.Cut(c, " ")
			wg.Go(func() {
				if resp := s.Request(method, path, nil, "Authorization", "Bearer "+s.bearer); resp.StatusCode != 200 && resp.StatusCode != 404 {
					t.Errorf("%s: status %d", c, resp.StatusCode)
				}
			})
		}
		wg.Wait()
		if len(s.Partitions("files#"))+len(s.Partitions("backup#")) == 0 {
			s.wantNothing()
			return
		}
		s.wantOneFile()
		s.wantUse(7)
	}
}

func TestAPurgeThatFailsHalfwayLosesNothingAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	gone := func() error { return errors.New("the store is gone") }
	s.Calls.Before("table.Write", gone)
	s.ask("DELETE /files/1?area=backup", 500)
	s.Calls.Before("table.Write", nil)
	s.wantOneFile()
	s.Calls.Before("blob.Delete", gone)
	s.ask("DELETE /files/1?area=backup", 200)
	s.Calls.Before("blob.Delete", nil)
	s.wantUse(0)
	if n := len(s.Objects(blob.Backup)); n != 1 {
		t.Fatalf("there are %d objects", n)
	}
	s.Clock.Advance(91 * 24 * time.Hour) // the day in the key
	sweeper := files.Sweeper{Service: file.Service(s.Data.Ports), Grace: time.Hour}
	if r, err := sweeper.Run(t.Context()); err != nil || r.Orphans != 1 {
		t.Errorf("the sweep reported %+v, %v", r, err)
	}
	s.wantNothing()
}
