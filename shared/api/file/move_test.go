package file_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
)

func TestDeletedFileIsOnlyInTheBackupArea(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("x", "content")
	moved := s.Ask("DELETE /files/1?lang=it", "").Want(200).File().LinkURL
	if !strings.HasPrefix(moved, s.Base+"/download/file/backup?lang=it&z=") {
		t.Errorf("the link is %s", moved)
	}
	s.Send("GET "+link, "").Want(401)
	s.wantOneFile()
	expect.Equal(t, "objects in the user area", len(s.Objects(blob.Files)), 0)
}

// TestUsersSeeAndDeleteOnlyTheirOwnFiles asks for records, and then deletes.
func TestUsersSeeAndDeleteOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("x", "content")
	bob := s.As("bob")
	for _, method := range []string{"GET", "DELETE"} {
		bob.Ask(method+" /files/1", "").Want(404)
		for path, status := range map[string]int{
			"2":             404,
			"1?area=all":    400,
			"1?area=Files":  400,
			"1?area=%":      400,
			"1?area=backup": 404,
		} {
			s.Ask(method+" /files/"+path, "").Want(status)
		}
	}
	s.Ask("DELETE /files/1", "").Want(200)
	s.Ask("DELETE /files/1", "").Want(404)
}

func TestRestoredFileIsUnchanged(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("x", "content")
	before, head := s.Ask("GET /download/list", "").File(), s.Send("HEAD "+link, "").Header
	s.Ask("POST /files/1/restore", "").Want(404)
	for range 3 {
		gone := s.backUp("1")
		expect.Equal(t, "the files", s.Ask("POST /files/1/restore", "").Want(200).Files, []apitest.File{before})
		s.Send("GET "+gone, "").Want(401)
		a := s.Send("GET "+link, "").WantHeaders("ETag", head.Get("ETag"), "Last-Modified", head.Get("Last-Modified"))
		expect.Equal(t, "the content", a.Text, "content")
	}
	s.Ask("POST /files/1/restore", "").Want(404)
}

// awaitMovers gives a stack, which moves bytes after it has answered, a minute until only n files
// have bytes.
func (s sharer) awaitMovers(n int) {
	for range 6 {
		if !s.InStack() || expect.Eventually(func() bool {
			moving := strings.Contains(fmt.Sprint(s.Partitions("files#"), s.Partitions("backup#")), `"from":["`)
			return !moving && len(s.Files()) == n
		}) {
			return
		}
	}
}

// wantOneFile checks that the whole file is in one area, and that nothing else is left.
func (s sharer) wantOneFile() {
	s.Helper()
	found := append(s.Ask("GET /download/list", "").Files, s.Ask("GET /download/list/backup", "").Files...)
	if len(found) != 1 {
		s.Fatalf("the file is listed %d times: %+v", len(found), found)
	}
	expect.Equal(s.TB, "the content", s.Get(found[0].LinkURL), "content")
	s.awaitMovers(1)
	if got, links := s.Files(), s.Partitions("link#"); len(got) != 1 || len(links) != 1 {
		s.Errorf("there are the files %q and %d links", got, len(links))
	}
}

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
	expect.NoErr(s.TB, err)
	expect.Equal(s.TB, "bytes in use", u.Used, want)
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
	expect.Equal(t, "objects", len(s.Objects(blob.Backup)), 1)
	s.Clock.Advance(91 * 24 * time.Hour) // the day in the key
	sweeper := files.Sweeper{Service: s.Service.Files(), Grace: time.Hour}
	if r, err := sweeper.Run(t.Context()); err != nil || r.Orphans != 1 {
		t.Errorf("the sweep reported %+v, %v", r, err)
	}
	s.wantNothing()
}

func TestOnlyTheOwnersFilesInTheBackupAreaArePurged(t *testing.T) {
	t.Parallel()
	s := newPurging(t)
	s.share("y", "more")
	s.Add("bob").Ask("DELETE /files/1?area=backup", "").Want(404)
	s.Ask("DELETE /files/0?area=backup", "").Want(400)
	s.Ask("DELETE /files/2?area=backup", "").Want(404) // it is in the user area
	s.Ask("DELETE /files/3?area=backup", "").Want(404) // there never was one
	s.Ask("DELETE /files/2?area=files", "").Want(200)
	expect.Equal(t, "files in the backup area", len(s.Ask("GET /download/list/backup", "").Files), 2)
}
