package file_test

import (
	"strings"
	"testing"

	"ferry/shared/api/apitest"
	"ferry/shared/blob"
)

func TestDeletedFileIsOnlyInTheBackupArea(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	file := s.Put(bearer, "file=x", "content").Files[0]
	e := s.Decode(s.Request("DELETE", "/files/1?lang=it", nil, "Authorization", "Bearer "+bearer), 200)
	if len(e.Files) != 1 || e.User != "alice" {
		t.Fatalf("the answer is %+v", e)
	}
	got := e.Files[0]
	if got.ID != 1 || got.Name != "x" || got.Length != 7 || got.Modified != file.Modified || !strings.HasPrefix(got.LinkURL, s.Base+"/download/file/backup?lang=it&z=") {
		t.Errorf("the file is %+v, it was %+v", got, file)
	}
	s.Decode(s.Request("GET", strings.TrimPrefix(file.LinkURL, s.Base), nil), 401)
	if n, m := len(s.Objects(blob.Files)), len(s.Objects(blob.Backup)); n != 0 || m != 1 {
		t.Errorf("there are %d objects in the user area and %d in the backup area", n, m)
	}
	if n := len(s.Partitions("link#")); n != 1 {
		t.Errorf("there are %d links", n)
	}
}

func TestUsersDeleteOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	s.AddUser("bob", password)
	alice, bob := apitest.Basic("alice", password), apitest.Basic("bob", password)
	s.Put(s.Login("alice", password), "file=x", "content")
	slash := 400
	if s.InStack() { // the gateway decodes the path, which then has no route
		slash = 404
	}
	for _, c := range []struct {
		path, auth string
		status     int
	}{
		{"/files/1", "", 401}, {"/files/1", apitest.Basic("alice", "x"), 401}, {"/files/1", bob, 404}, {"/files/2", alice, 404},
		{"/files/0", alice, 400}, {"/files/-1", alice, 400}, {"/files/x", alice, 400}, {"/files/99999999999999999999", alice, 400}, {"/files/1%2F2", alice, slash},
		{"/files/", alice, 404}, {"/files", alice, 404}, {"/files/1", alice, 200}, {"/files/1", alice, 404},
	} {
		resp := s.Request("DELETE", c.path, nil, "Authorization", c.auth)
		if s.Decode(resp, c.status); c.status != 200 && resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", c.path)
		}
	}
}
