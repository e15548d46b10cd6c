package file_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/apitest"
)

func TestBackupListShowsDeletedFiles(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	auth := "Bearer " + bearer
	for i := range 4 {
		s.Put(bearer, fmt.Sprintf("file=%d", i+1), fmt.Sprint("content ", i+1))
	}
	for _, id := range []int{3, 1, 2} {
		s.Decode(s.Request("DELETE", fmt.Sprintf("/files/%d", id), nil, "Authorization", auth), 200)
	}
	resp := s.Request("GET", "/download/list/backup?limit=2", nil, "Authorization", auth)
	want := "<" + s.Base + `/download/list/backup?lang=en&limit=2&after=2>; rel="next"`
	if got := resp.Header.Get("Link"); got != want {
		t.Errorf("Link is %q, want %q", got, want)
	}
	e := s.Decode(resp, 200)
	if len(e.Files) != 2 || e.Files[0].Name != "3" || e.Files[1].Name != "2" {
		t.Fatalf("the list has %+v", e.Files)
	}
	link, ok := strings.CutPrefix(e.Files[0].LinkURL, s.Base)
	if !ok || !strings.HasPrefix(link, "/download/file/backup?lang=en&z=") {
		t.Errorf("the link is %q", e.Files[0].LinkURL)
	}
	if got := s.Text(s.Request("GET", link, nil)); got != "content 3" {
		t.Errorf("the link gives %q", got)
	}
	for path, status := range map[string]int{
		strings.Replace(link, "/backup?lang=en&z=", "?k=", 1): 401, // the token of one area is none in the other
		"/download/file/backup":                               400, strings.Replace(link, "z=", "k=", 1): 400, link + "x": 401,
	} {
		resp := s.Request("GET", path, nil)
		if s.Decode(resp, status); resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", path)
		}
	}
	if got := s.Decode(s.Request("GET", "/download/list", nil, "Authorization", auth), 200).Files; len(got) != 1 || got[0].Name != "4" {
		t.Errorf("the user area has %+v", got)
	}
}

func TestBackupFilesExpire(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	basic := apitest.Basic("alice", password)
	s.Put(s.Login("alice", password), "file=x", "x")
	gone := s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", basic), 200)
	link := strings.TrimPrefix(gone.Files[0].LinkURL, s.Base)
	for _, c := range []struct {
		days   int
		status int
		files  int
	}{{89, 200, 1}, {1, 401, 0}} {
		s.Clock.Advance(time.Duration(c.days) * 24 * time.Hour)
		if resp := s.Request("GET", link, nil); resp.StatusCode != c.status {
			t.Errorf("the link is answered with %d, want %d", resp.StatusCode, c.status)
		}
		if got := s.Decode(s.Request("GET", "/download/list/backup", nil, "Authorization", basic), 200).Files; len(got) != c.files {
			t.Errorf("the list has %d files, want %d", len(got), c.files)
		}
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", basic), 404)
}

func TestBackupListNeedsACredential(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Decode(s.Request("GET", "/download/list/backup", nil), 401)
}
