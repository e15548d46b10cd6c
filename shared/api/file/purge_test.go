package file_test

import (
	"errors"
	"io"
	"log/slog"
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
func newPurging(t *testing.T) (*apitest.Server, string) {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("alice", password, func(u *auth.User) { u.Quota = 1000 })
	bearer := s.Login("alice", password)
	s.Put(bearer, "file=x&notify=1", "content")
	s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", "Bearer "+bearer), 200)
	return s, "Bearer " + bearer
}

// wantNothing checks that nothing is left of alice's file, and that its room is free.
func wantNothing(t *testing.T, s *apitest.Server) {
	t.Helper()
	awaitMovers(s, func() bool { return len(s.Files()) == 0 })
	left := append(s.Objects(blob.Files), s.Objects(blob.Backup)...)
	for _, prefix := range []string{"files#", "backup#", "link#", "receipt#"} {
		for key := range s.Partitions(prefix) {
			left = append(left, key)
		}
	}
	if len(left) > 0 {
		t.Errorf("these are left: %q", left)
	}
	wantUse(t, s, 0)
}

func wantUse(t *testing.T, s *apitest.Server, want int64) {
	t.Helper()
	if u, err := s.Users.Get(t.Context(), "alice"); err != nil || u.Used != want {
		t.Errorf("alice uses %d bytes, want %d (%v)", u.Used, want, err)
	}
}

func TestAPurgedFileIsGoneAndItsRoomIsFree(t *testing.T) {
	t.Parallel()
	s, auth := newPurging(t)
	wantUse(t, s, 7) // the backup area counts too
	for _, when := range []string{"once", "repeated"} {
		e := s.Decode(s.Request("DELETE", "/files/1?area=backup", nil, "Authorization", auth), 200)
		if e.User != "alice" || len(e.Files) != 0 {
			t.Errorf("%s: the answer is %+v", when, e)
		}
		wantNothing(t, s)
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 404)
}

func TestOnlyTheOwnersFilesInTheBackupAreaArePurged(t *testing.T) {
	t.Parallel()
	s, auth := newPurging(t)
	s.AddUser("bob", password)
	s.Put(s.Login("alice", password), "file=y", "more")
	bob := apitest.Basic("bob", password)
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
	list := s.Decode(s.Request("GET", "/download/list/backup", nil, "Authorization", auth), 200)
	if len(list.Files) != 2 {
		t.Errorf("the backup area has %+v", list.Files)
	}
}

func TestAFilePurgedAndRestoredAtOnceIsWholeOrGone(t *testing.T) {
	t.Parallel()
	s, auth := newPurging(t)
	for range 10 {
		var wg sync.WaitGroup
		for _, c := range []string{"DELETE /files/1?area=backup", "POST /files/1/restore", "DELETE /files/1"} {
			method, path, _ := strings.Cut(c, " ")
			wg.Go(func() {
				if resp := s.Request(method, path, nil, "Authorization", auth); resp.StatusCode != 200 && resp.StatusCode != 404 {
					t.Errorf("%s: status %d", c, resp.StatusCode)
				}
			})
		}
		wg.Wait()
		if len(s.Partitions("files#"))+len(s.Partitions("backup#")) == 0 {
			wantNothing(t, s)
			return
		}
		wantOneFile(t, s, auth)
		wantUse(t, s, 7)
	}
}

func TestAPurgeThatFailsHalfwayLosesNothingAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s, auth := newPurging(t)
	gone := func() error { return errors.New("the store is gone") }
	s.Calls.Before("table.Write", gone)
	s.Decode(s.Request("DELETE", "/files/1?area=backup", nil, "Authorization", auth), 500)
	s.Calls.Before("table.Write", nil)
	wantOneFile(t, s, auth)
	s.Calls.Before("blob.Delete", gone)
	s.Decode(s.Request("DELETE", "/files/1?area=backup", nil, "Authorization", auth), 200)
	s.Calls.Before("blob.Delete", nil)
	wantUse(t, s, 0)
	if n := len(s.Objects(blob.Backup)); n != 1 {
		t.Fatalf("there are %d objects", n)
	}
	s.Clock.Advance(91 * 24 * time.Hour) // the day in the key
	sweeper := files.Sweeper{Service: file.Service(s.Data.Ports), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Grace: time.Hour}
	if r, err := sweeper.Run(t.Context()); err != nil || r.Orphans != 1 {
		t.Errorf("the sweep reported %+v, %v", r, err)
	}
	wantNothing(t, s)
}
