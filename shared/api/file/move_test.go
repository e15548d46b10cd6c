package file_test

import (
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
)

func TestDeletedFileIsOnlyInTheBackupArea(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("x", "content")
	file := s.ask("GET /download/list", 200).Files[0]
	e := s.ask("DELETE /files/1?lang=it", 200)
	if len(e.Files) != 1 || e.User != "ann" {
		t.Fatalf("the answer is %+v", e)
	}
	got := e.Files[0]
	if got.ID != 1 || got.Name != "x" || got.Length != 7 || got.Modified != file.Modified || !strings.HasPrefix(got.LinkURL, s.Base+"/download/file/backup?lang=it&z=") {
		t.Errorf("the file is %+v, it was %+v", got, file)
	}
	s.Decode(s.Request("GET", link, nil), 401)
	s.wantOneFile()
	if n, m := len(s.Objects(blob.Files)), len(s.Objects(blob.Backup)); n != 0 || m != 1 {
		t.Errorf("there are %d objects in the user area and %d in the backup area", n, m)
	}
}

func TestUsersDeleteOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	s.AddUser("bob", password)
	ann, bob := apitest.Basic("ann", password), apitest.Basic("bob", password)
	s.put("x", "content")
	slash := 400
	if s.InStack() { // the gateway decodes the path, which then has no route
		slash = 404
	}
	for _, c := range []struct {
		path, auth string
		status     int
	}{
		{"/files/1", "", 401}, {"/files/1", apitest.Basic("ann", "x"), 401}, {"/files/1", bob, 404}, {"/files/2", ann, 404},
		{"/files/0", ann, 400}, {"/files/x", ann, 400}, {"/files/99999999999999999999", ann, 400}, {"/files/1%2F2", ann, slash},
		{"/files/", ann, 404}, {"/files", ann, 404}, {"/files/1", ann, 200}, {"/files/1", ann, 404},
	} {
		resp := s.Request("DELETE", c.path, nil, "Authorization", c.auth)
		if s.Decode(resp, c.status); c.status != 200 && resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", c.path)
		}
	}
}

func TestRestoredFileIsUnchanged(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("x", "content")
	before, head := s.ask("GET /download/list", 200).Files[0], s.Request("HEAD", link, nil).Header
	s.ask("POST /files/1/restore", 404)
	for range 3 {
		gone := s.backUp("1")
		if e := s.ask("POST /files/1/restore", 200); len(e.Files) != 1 || e.Files[0] != before {
			t.Errorf("the file is %+v, it was %+v", e.Files, before)
		}
		s.Decode(s.Request("GET", gone, nil), 401)
		resp := s.Request("GET", link, nil)
		if got := s.Text(resp); got != "content" || resp.Header.Get("ETag") != head.Get("ETag") || resp.Header.Get("Last-Modified") != head.Get("Last-Modified") {
			t.Errorf("the link gives %q with %v, before with %v", got, resp.Header, head)
		}
	}
	s.ask("POST /files/1/restore", 404)
	s.ask("POST /files/x/restore", 400)
	s.Decode(s.Request("POST", "/files/1/restore", nil), 401)
}

// awaitMovers gives a stack, which moves bytes after it has answered, 10 seconds for that.
func (s sharer) awaitMovers(moved func() bool) {
	if s.InStack() {
		waitFor(moved)
	}
}

// wantOneFile checks that the whole file is in one area, and that nothing else is left.
func (s sharer) wantOneFile() {
	s.Helper()
	area, found := blob.Files, s.ask("GET /download/list", 200).Files
	if len(found) == 0 {
		area, found = blob.Backup, s.ask("GET /download/list/backup", 200).Files
	} else if n := len(s.ask("GET /download/list/backup", 200).Files); n > 0 {
		s.Fatalf("%d files are also in the backup area", n)
	}
	if len(found) != 1 {
		s.Fatalf("the file is listed %d times: %+v", len(found), found)
	}
	if got := s.Text(s.Request("GET", strings.TrimPrefix(found[0].LinkURL, s.Base), nil)); got != "content" {
		s.Fatalf("the link gives %q", got)
	}
	s.awaitMovers(func() bool { return len(s.Objects(area)) == 1 && len(s.Files()) == 1 })
	if got, links := s.Files(), s.Partitions("link#"); len(got) != 1 || len(links) != 1 {
		s.Errorf("there are the files %q and %d links", got, len(links))
	}
}
