package file_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

// start returns a service where ann has n files, and her credential.
func start(t *testing.T, n int) (sharer, string) {
	t.Helper()
	s := newSharer(t)
	for i := range n {
		s.put(fmt.Sprint(i+1), fmt.Sprint("content ", i+1))
	}
	return s, "Bearer " + s.bearer
}

// ids returns the ids in a list.
func ids(e apitest.Envelope) string {
	all := make([]string, len(e.Files))
	for i, f := range e.Files {
		all[i] = fmt.Sprint(f.ID)
	}
	return strings.Join(all, " ")
}

// next returns the path of the next page, or "".
func (s sharer) next(resp *http.Response) string {
	s.Helper()
	link := resp.Header.Get("Link")
	path, ok := strings.CutPrefix(link, "<"+s.Base)
	path, ok2 := strings.CutSuffix(path, `>; rel="next"`)
	if link != "" && (!ok || !ok2) {
		s.Fatalf("Link is %q", link)
	}
	return path
}

func TestPagesCoverTheWholeList(t *testing.T) {
	t.Parallel()
	s, credential := start(t, 7)
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"7 6 5 4 3 2 1"}},
		{"?limit=3", []string{"7 6 5", "4 3 2", "1"}},
		{"?limit=7", []string{"7 6 5 4 3 2 1"}},
		{"?limit=6", []string{"7 6 5 4 3 2", "1"}},
		{"?limit=1000", []string{"7 6 5 4 3 2 1"}},
		{"?limit=2&after=4", []string{"3 2", "1"}},
		{"?after=1", []string{""}},
		{"?after=8", []string{"7 6 5 4 3 2 1"}},
		{"?after=9223372036854775807", []string{"7 6 5 4 3 2 1"}},
	} {
		path := "/download/list" + c.query
		for i, want := range c.want {
			resp := s.Request("GET", path, nil, "Authorization", credential)
			path = s.next(resp)
			if got := ids(s.Decode(resp, 200)); got != want {
				t.Errorf("page %d of %q is %q, want %q", i+1, c.query, got, want)
			}
			if (path == "") != (i == len(c.want)-1) {
				t.Fatalf("page %d of %q links to %q", i+1, c.query, path)
			}
		}
	}
}

func TestNextLinkKeepsLimitAndLanguage(t *testing.T) {
	t.Parallel()
	s, credential := start(t, 3)
	resp := s.Request("GET", "/download/list?limit=1&lang=de-AT", nil, "Authorization", credential)
	want := "<" + s.Base + `/download/list?lang=de&limit=1&after=3>; rel="next"`
	if got := resp.Header.Get("Link"); got != want {
		t.Errorf("Link is %q, want %q", got, want)
	}
	if link := s.Decode(resp, 200).Files[0].LinkURL; !strings.HasPrefix(link, s.Base+"/download/file?lang=de&k=") {
		t.Errorf("the link is %q", link)
	}
}

func TestListNeedsValidParametersAndCredential(t *testing.T) {
	t.Parallel()
	s, credential := start(t, 0)
	s.AddUser("off", password, func(u *auth.User) { u.State = auth.Disabled })
	for _, c := range []struct {
		query, credential string
		status            int
	}{
		{"?limit=0", credential, 400}, {"?limit=1001", credential, 400}, {"?limit=-1", credential, 400}, {"?limit=many", credential, 400},
		{"?after=0", credential, 400}, {"?after=-1", credential, 400}, {"?after=x", credential, 400}, {"?limit=", credential, 400}, {"?after=", credential, 400}, {"?limit=%zz", credential, 400}, {"?limit=1;after=1", credential, 400},
		{"", "", 401}, {"", "Bearer x", 401}, {"", apitest.Basic("ann", "x"), 401}, {"", apitest.Basic("off", password), 401},
		{"", apitest.Basic("ann", password), 200}, {"?unknown=1", credential, 200},
	} {
		resp := s.Request("GET", "/download/list"+c.query, nil, "Authorization", c.credential)
		if s.Decode(resp, c.status); c.status != 200 && resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%q: Ferry-Error is missing", c.query)
		}
	}
}

func TestExpiredFilesAreNotListedBeforeTheSweep(t *testing.T) {
	t.Parallel()
	s, _ := start(t, 3)
	s.Clock.Advance(15 * 24 * time.Hour)
	s.Put(s.Login("ann", password), "file=4", "x")
	s.Clock.Advance(15*24*time.Hour + time.Hour)
	path := "/download/list?limit=2"
	for page, want := range []string{"4", ""} {
		resp := s.Request("GET", path, nil, "Authorization", apitest.Basic("ann", password))
		path = s.next(resp)
		if got := ids(s.Decode(resp, 200)); got != want || (path == "") != (page == 1) {
			t.Errorf("page %d is %q, and links to %q", page+1, got, path)
		}
	}
}

func TestUsersListOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s, _ := start(t, 2)
	for _, name := range []string{"ann2", "an"} {
		s.AddUser(name, password)
		e := s.Decode(s.Request("GET", "/download/list", nil, "Authorization", apitest.Basic(name, password)), 200)
		if len(e.Files) != 0 || e.User != name {
			t.Errorf("%s sees %+v", name, e)
		}
	}
}

func TestBackupListShowsDeletedFiles(t *testing.T) {
	t.Parallel()
	s, credential := start(t, 4)
	for _, id := range []string{"3", "1", "2"} {
		s.backUp(id)
	}
	resp := s.Request("GET", "/download/list/backup?limit=2", nil, "Authorization", credential)
	if got := s.next(resp); got != "/download/list/backup?lang=en&limit=2&after=2" {
		t.Errorf("the next page is %q", got)
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
	if got := s.ask("GET /download/list", 200).Files; len(got) != 1 || got[0].Name != "4" {
		t.Errorf("the user area has %+v", got)
	}
}

func TestBackupFilesExpire(t *testing.T) {
	t.Parallel()
	s, _ := start(t, 1)
	link := s.backUp("1")
	for _, c := range []struct {
		days   int
		status int
		files  int
	}{{89, 200, 1}, {1, 401, 0}} {
		s.Clock.Advance(time.Duration(c.days) * 24 * time.Hour)
		if resp := s.Request("GET", link, nil); resp.StatusCode != c.status {
			t.Errorf("the link: status %d, want %d", resp.StatusCode, c.status)
		}
		s.bearer = s.Login("ann", password)
		if got := s.ask("GET /download/list/backup", 200).Files; len(got) != c.files {
			t.Errorf("the list has %d files, want %d", len(got), c.files)
		}
	}
	s.ask("POST /files/1/restore", 404)
	s.Decode(s.Request("GET", "/download/list/backup", nil), 401)
}
