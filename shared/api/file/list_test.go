package file_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

const password = "a password to try"

// start returns a service where alice has n files, and her credential.
func start(t *testing.T, n int) (*apitest.Server, string) {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	for i := range n {
		s.Put(bearer, fmt.Sprintf("file=%d", i+1), "x")
	}
	return s, "Bearer " + bearer
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
func next(t *testing.T, s *apitest.Server, link string) string {
	t.Helper()
	if link == "" {
		return ""
	}
	path, ok := strings.CutPrefix(link, "<"+s.Base)
	path, ok2 := strings.CutSuffix(path, `>; rel="next"`)
	if !ok || !ok2 {
		t.Fatalf("Link is %q", link)
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
			path = next(t, s, resp.Header.Get("Link"))
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
		{"", "", 401}, {"", "Bearer x", 401}, {"", apitest.Basic("alice", "x"), 401}, {"", apitest.Basic("off", password), 401},
		{"", apitest.Basic("alice", password), 200}, {"?unknown=1", credential, 200},
	} {
		resp := s.Request("GET", "/download/list"+c.query, nil, "Authorization", c.credential)
		if s.Decode(resp, c.status); c.status != 200 && resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%q: Ferry-Error is missing", c.query)
		}
	}
}

func TestListedLinksHaveTheCallersLanguage(t *testing.T) {
	t.Parallel()
	s, credential := start(t, 0)
	s.AddUser("ugo", password, func(u *auth.User) { u.Lang = "it" })
	s.AddUser("nils", password, func(u *auth.User) { u.Lang = "" })
	for _, name := range []string{"ugo", "nils"} {
		s.Put(s.Login(name, password), "file=x", "x")
	}
	s.Decode(s.Request("GET", "/download/list?lang=fr", nil, "Authorization", credential), 200)
	for _, c := range []struct{ user, query, accept, want string }{
		{"ugo", "", "de", "it"}, {"ugo", "?lang=es", "de", "es"}, {"nils", "", "de", "de"}, {"nils", "", "", "en"}, {"nils", "?lang=x", "", "en"},
	} {
		resp := s.Request("GET", "/download/list"+c.query, nil, "Authorization", apitest.Basic(c.user, password), "Accept-Language", c.accept)
		if link := s.Decode(resp, 200).Files[0].LinkURL; !strings.Contains(link, "?lang="+c.want+"&") {
			t.Errorf("%s with %q and %q gets %q", c.user, c.query, c.accept, link)
		}
	}
}

func TestListedLinksStayTheSame(t *testing.T) {
	t.Parallel()
	s, credential := start(t, 2)
	list := func() string {
		return fmt.Sprint(s.Decode(s.Request("GET", "/download/list", nil, "Authorization", credential), 200).Files)
	}
	before := list()
	if again := list(); again != before {
		t.Errorf("the second list is %s, the first was %s", again, before)
	}
	s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", credential), 200)
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", credential), 200)
	if again := list(); again != before {
		t.Errorf("after a restore the list is %s, it was %s", again, before)
	}
}

func TestExpiredFilesAreNotListedBeforeTheSweep(t *testing.T) {
	t.Parallel()
	s, _ := start(t, 3)
	s.Clock.Advance(15 * 24 * time.Hour)
	credential := apitest.Basic("alice", password)
	bearer := s.Login("alice", password)
	s.Put(bearer, "file=4", "x")
	s.Clock.Advance(15*24*time.Hour + time.Hour)
	resp := s.Request("GET", "/download/list?limit=2", nil, "Authorization", credential)
	path := next(t, s, resp.Header.Get("Link"))
	if got := ids(s.Decode(resp, 200)); got != "4" || path == "" {
		t.Errorf("the first page is %q, and links to %q", got, path)
	}
	resp = s.Request("GET", path, nil, "Authorization", credential)
	if got := ids(s.Decode(resp, 200)); got != "" || resp.Header.Get("Link") != "" {
		t.Errorf("the second page is %q, and links to %q", got, resp.Header.Get("Link"))
	}
}

func TestUsersListOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s, _ := start(t, 2)
	s.AddUser("alice2", password)
	s.AddUser("al", password)
	for _, name := range []string{"alice2", "al"} {
		e := s.Decode(s.Request("GET", "/download/list", nil, "Authorization", apitest.Basic(name, password)), 200)
		if len(e.Files) != 0 || e.User != name {
			t.Errorf("%s sees %+v", name, e)
		}
	}
}

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
		strings.Replace(link, "/backup?lang=en&z=", "?k=", 1): 401, // a token works in one area only
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
			t.Errorf("the link: status %d, want %d", resp.StatusCode, c.status)
		}
		if got := s.Decode(s.Request("GET", "/download/list/backup", nil, "Authorization", basic), 200).Files; len(got) != c.files {
			t.Errorf("the list has %d files, want %d", len(got), c.files)
		}
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", basic), 404)
	s.Decode(s.Request("GET", "/download/list/backup", nil), 401)
}
