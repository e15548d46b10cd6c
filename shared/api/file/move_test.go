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
	awaitMovers(s, func() bool { return len(s.Objects(blob.Files)) == 0 })
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

func TestRestoredFileIsUnchanged(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	auth := "Bearer " + bearer
	before := s.Put(bearer, "file=x", "content").Files[0]
	head := s.Request("HEAD", strings.TrimPrefix(before.LinkURL, s.Base), nil).Header
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 404)
	for range 3 {
		gone := s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", auth), 200).Files[0]
		e := s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 200)
		if len(e.Files) != 1 || e.Files[0] != before {
			t.Errorf("the file is %+v, it was %+v", e.Files, before)
		}
		s.Decode(s.Request("GET", strings.TrimPrefix(gone.LinkURL, s.Base), nil), 401)
		resp := s.Request("GET", strings.TrimPrefix(before.LinkURL, s.Base), nil)
		if got := s.Text(resp); got != "content" || resp.Header.Get("ETag") != head.Get("ETag") || resp.Header.Get("Last-Modified") != head.Get("Last-Modified") {
			t.Errorf("the link gives %q with %v, before with %v", got, resp.Header, head)
		}
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 404)
	s.Decode(s.Request("POST", "/files/x/restore", nil, "Authorization", auth), 400)
	s.Decode(s.Request("POST", "/files/1/restore", nil), 401)
}

// TestConcurrentMovesNeverLoseTheFile deletes and restores one file concurrently.
func TestConcurrentMovesNeverLoseTheFile(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	auth := "Bearer " + bearer
	s.Put(bearer, "file=x", "content")
	move := map[bool][2]string{false: {"DELETE", "/files/1"}, true: {"POST", "/files/1/restore"}}
	for round := range 12 {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				m := move[i%2 == 0]
				if resp := s.Request(m[0], m[1], nil, "Authorization", auth); resp.StatusCode != 200 && resp.StatusCode != 404 {
					t.Errorf("round %d: %s: status %d", round, m[0], resp.StatusCode)
				}
			})
		}
		wg.Wait()
		wantOneFile(t, s, auth)
	}
}

// awaitMovers gives a stack, which moves bytes after it has answered, 10 seconds for that.
func awaitMovers(s *apitest.Server, moved func() bool) {
	for end := time.Now().Add(10 * time.Second); s.InStack() && !moved() && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
}

// wantOneFile checks that the whole file is in one area, and that nothing else is left.
func wantOneFile(t *testing.T, s *apitest.Server, auth string) {
	t.Helper()
	var found []apitest.File
	for _, list := range []string{"/download/list", "/download/list/backup"} {
		found = append(found, s.Decode(s.Request("GET", list, nil, "Authorization", auth), 200).Files...)
	}
	if len(found) != 1 {
		t.Fatalf("the file is listed %d times: %+v", len(found), found)
	}
	if got := s.Text(s.Request("GET", strings.TrimPrefix(found[0].LinkURL, s.Base), nil)); got != "content" {
		t.Fatalf("the link gives %q", got)
	}
	awaitMovers(s, func() bool { return len(s.Files()) == 1 })
	if n := len(s.Objects(blob.Files)) + len(s.Objects(blob.Backup)); n != 1 || len(s.Files()) != 1 {
		t.Errorf("there are %d objects and the files %q", n, s.Files())
	}
	if n := len(s.Partitions("link#")); n != 1 {
		t.Errorf("there are %d links", n)
	}
}

func TestFailedMoveLeavesTheFileInPlace(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"table.Write"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t)
			s.AddUser("alice", password)
			bearer := s.Login("alice", password)
			s.Put(bearer, "file=x", "content")
			s.Calls.Before(call, func() error { return errors.New("the store is gone") })
			for _, path := range []string{"DELETE /files/1", "POST /files/1/restore"} {
				method, path, _ := strings.Cut(path, " ")
				want := map[string]int{"DELETE": 500, "POST": 404}[method]
				if resp := s.Request(method, path, nil, "Authorization", "Bearer "+bearer); resp.StatusCode != want {
					t.Errorf("%s: status %d, want %d", method, resp.StatusCode, want)
				}
			}
			s.Calls.Before(call, nil)
			e := s.Decode(s.Request("GET", "/download/list", nil, "Authorization", "Bearer "+bearer), 200)
			if fmt.Sprint(len(e.Files)) != "1" || s.Text(s.Request("GET", strings.TrimPrefix(e.Files[0].LinkURL, s.Base), nil)) != "content" {
				t.Errorf("the list has %+v", e.Files)
			}
		})
	}
}
