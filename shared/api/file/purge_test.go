package file_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
)

// newPurging returns eve, who has a quota, and a file in the backup area.
func newPurging(t *testing.T) sharer {
	t.Helper()
	s := sharer{apitest.New(t).Add("eve", apitest.Quota(1000))}
	s.Upload("file=x&notify=1", "content")
	s.backUp("1")
	return s
}

// wantNothing checks that nothing is left of eve's file, and that its room is free.
func (s sharer) wantNothing() {
	s.Helper()
	s.awaitMovers(0)
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
	u, err := s.Users.Get(s.Context(), "eve")
	apitest.Must(s.TB, err)
	apitest.Equal(s.TB, "bytes in use", u.Used, want)
}

func TestAPurgedFileIsGoneAndItsRoomIsFree(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	s.wantUse(7) // the backup area counts too
	for range 2 {
		if e := s.Ask("DELETE /files/1?area=backup", "").Want(200); e.User != "eve" || len(e.Files) != 0 {
			t.Errorf("the answer is %s", e.Text)
		}
		s.wantNothing()
	}
	s.Ask("POST /files/1/restore", "").Want(404)
}

func TestOnlyTheOwnersFilesInTheBackupAreaArePurged(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	s.share("y", "more")
	s.Send("DELETE /files/1?area=backup", "").Want(401)
	s.Add("bob").Ask("DELETE /files/1?area=backup", "").Want(404)
	for path, status := range map[string]int{
		"/files/1?area=x": 400, "/files/0?area=backup": 400, "/files/1?area=%zz": 400,
		"/files/2?area=backup": 404, // it is in the user area
		"/files/3?area=backup": 404, // there never was one
	} {
		s.Ask("DELETE "+path, "").Want(status)
	}
	s.Ask("DELETE /files/2?area=files", "").Want(200)
	apitest.Equal(t, "files in the backup area", len(s.Ask("GET /download/list/backup", "").Files), 2)
}

func TestAFilePurgedAndRestoredAtOnceIsWholeOrGone(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	for range 10 {
		var wg sync.WaitGroup
		for _, request := range []string{"DELETE /files/1?area=backup", "POST /files/1/restore", "DELETE /files/1"} {
			wg.Go(func() {
				if a := s.Ask(request, ""); a.Code != 404 {
					a.Want(200)
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
	purge := func(call string, status int) {
		s.Calls.Before(call, func() error { return errors.New("the store is gone") })
		s.Ask("DELETE /files/1?area=backup", "").Want(status)
		s.Calls.Before(call, nil)
	}
	purge("table.Write", 500)
	s.wantOneFile()
	purge("blob.Delete", 200)
	s.wantUse(0)
	apitest.Equal(t, "objects", len(s.Objects(blob.Backup)), 1)
	s.Clock.Advance(91 * 24 * time.Hour) // the day in the key
	sweeper := files.Sweeper{Service: file.Service(s.Data.Ports), Grace: time.Hour}
	if r, err := sweeper.Run(t.Context()); err != nil || r.Orphans != 1 {
		t.Errorf("the sweep reported %+v, %v", r, err)
	}
	s.wantNothing()
}
