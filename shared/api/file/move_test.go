package file_test

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
)

func TestDeletedFileIsOnlyInTheBackupArea(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("x", "content")
	file := s.Ask("GET /download/list", "").File()
	e := s.Ask("DELETE /files/1?lang=it", "").Want(200)
	got := e.File()
	if got.ID != 1 || got.Name != "x" || got.Length != 7 || got.Modified != file.Modified || e.User != "ann" || len(e.Files) != 1 ||
		!strings.HasPrefix(got.LinkURL, s.Base+"/download/file/backup?lang=it&z=") {
		t.Errorf("the answer is %s, the file was %+v", e.Text, file)
	}
	s.Send("GET "+link, "").Want(401)
	s.wantOneFile()
	if n, m := len(s.Objects(blob.Files)), len(s.Objects(blob.Backup)); n != 0 || m != 1 {
		t.Errorf("there are %d objects in the user area and %d in the backup area", n, m)
	}
}

// TestUsersSeeAndDeleteOnlyTheirOwnFiles asks for records, and then deletes.
func TestUsersSeeAndDeleteOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s := begin(t)
	ann, bob := "Bearer "+s.Bearer, apitest.Basic("bob", apitest.Password)
	s.share("x", "content")
	slash := 400
	if s.InStack() { // the gateway decodes the path, which then has no route
		slash = 404
	}
	for _, method := range []string{"GET", "DELETE"} {
		for _, c := range []struct {
			path, auth string
			status     int
		}{
			{"/files/1", "", 401}, {"/files/1", apitest.Basic("ann", "x"), 401}, {"/files/1", bob, 404}, {"/files/2", ann, 404},
			{"/files/0", ann, 400}, {"/files/-1", ann, 400}, {"/files/01", ann, 400}, {"/files/x", ann, 400}, {"/files/1%2F2", ann, slash},
			{"/files/99999999999999999999", ann, 400}, {"/files/1?area=all", ann, 400}, {"/files/1?area=Files", ann, 400},
			{"/files/1?area=%", ann, 400}, {"/files/1?area=backup", ann, 404}, {"/files/", ann, 404}, {"/files", ann, 404},
			{"/files/1", ann, 200},
		} {
			s.Send(method+" "+c.path, "", "Authorization", c.auth).Want(c.status)
		}
	}
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
		apitest.Equal(t, "the files", s.Ask("POST /files/1/restore", "").Want(200).Files, []apitest.File{before})
		s.Send("GET "+gone, "").Want(401)
		a := s.Send("GET "+link, "").WantHeaders("ETag", head.Get("ETag"), "Last-Modified", head.Get("Last-Modified"))
		apitest.Equal(t, "the content", a.Text, "content")
	}
	s.Ask("POST /files/1/restore", "").Want(404)
	s.Ask("POST /files/x/restore", "").Want(400)
	s.Send("POST /files/1/restore", "").Want(401)
}

// awaitMovers gives a stack, which moves bytes after it has answered, a minute until only n files
// have bytes.
func (s sharer) awaitMovers(n int) {
	for range 6 {
		if !s.InStack() || apitest.Eventually(func() bool {
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
	apitest.Equal(s.TB, "the content", s.Get(found[0].LinkURL), "content")
	s.awaitMovers(1)
	if got, links := s.Files(), s.Partitions("link#"); len(got) != 1 || len(links) != 1 {
		s.Errorf("there are the files %q and %d links", got, len(links))
	}
}
