package file_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
)

// start returns ann, who has n files.
func start(t *testing.T, n int) sharer {
	t.Helper()
	s := begin(t)
	for i := range n {
		s.share(fmt.Sprint(i+1), fmt.Sprint("content ", i+1))
	}
	return s
}

// pages reads a list page by page, and returns the names in each.
func (s sharer) pages(path string) (all []string) {
	s.Helper()
	for path != "" {
		a := s.Ask("GET "+path, "").Want(200)
		var names []string
		for _, f := range a.Files {
			names = append(names, f.Name)
		}
		all = append(all, strings.Join(names, " "))
		path = strings.TrimSuffix(strings.TrimPrefix(a.Header.Get("Link"), "<"), `>; rel="next"`)
	}
	return all
}

func TestPagesCoverTheWholeList(t *testing.T) {
	t.Parallel()
	s := start(t, 7)
	for query, want := range map[string][]string{
		"":                           {"7 6 5 4 3 2 1"},
		"?limit=3":                   {"7 6 5", "4 3 2", "1"},
		"?limit=7":                   {"7 6 5 4 3 2 1"},
		"?limit=6":                   {"7 6 5 4 3 2", "1"},
		"?limit=1000":                {"7 6 5 4 3 2 1"},
		"?limit=2&after=4":           {"3 2", "1"},
		"?after=1":                   {""},
		"?after=8":                   {"7 6 5 4 3 2 1"},
		"?after=9223372036854775807": {"7 6 5 4 3 2 1"},
	} {
		expect.Equal(t, query, s.pages("/download/list"+query), want)
	}
}

func TestNextLinkKeepsLimitAndLanguage(t *testing.T) {
	t.Parallel()
	s := start(t, 3)
	a := s.Ask("GET /download/list?limit=1&lang=de-AT", "")
	a.WantHeaders("Link", "<"+s.Base+`/download/list?lang=de&limit=1&after=3>; rel="next"`)
	if !strings.HasPrefix(a.File().LinkURL, s.Base+"/download/file?lang=de&k=") {
		t.Errorf("the link is %q", a.File().LinkURL)
	}
}

func TestFilesAreFoundByTheirNames(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for _, name := range []string{"Bericht M\u00e4rz.pdf", "x.txt", "MA\u0308RZ 2.pdf", "märz", "y.txt"} {
		s.share(name, "1")
	}
	for query, want := range map[string][]string{
		"?search=m%C3%A4rz":             {"märz MÄRZ 2.pdf Bericht März.pdf"},
		"?search=ma%CC%88rz&limit=2":    {"märz MÄRZ 2.pdf", "Bericht März.pdf"},
		"?search=.PDF&limit=1":          {"MÄRZ 2.pdf", "Bericht März.pdf"},
		"?search=%2B%26":                {""},
		"?search=":                      {"y.txt märz MÄRZ 2.pdf x.txt Bericht März.pdf"},
		"?search=t&limit=1&lang=de":     {"y.txt", "x.txt", "Bericht März.pdf"},
		"/backup?search=t":              {""},
		"?search=no+such+name&limit=10": {""},
	} {
		expect.Equal(t, query, s.pages("/download/list"+query), want)
	}
	for parameter, value := range map[string]string{"search": strings.Repeat("a", 256), "limit": "1001", "after": "0"} {
		s.Ask("GET /download/list?"+parameter+"="+value, "").Want(400).WantHeaders("Ferry-Parameter", parameter)
	}
	s.Ask("GET /download/list?limit=0", "").Want(400)
	if !s.InStack() { // whose gateway mends it
		s.Ask("GET /download/list?search=%ff", "").Want(400)
	}
}

func TestExpiredFilesAreNotListedBeforeTheSweep(t *testing.T) {
	t.Parallel()
	s := start(t, 3)
	s.Clock.Advance(15 * 24 * time.Hour)
	s.As("ann").Upload("file=4", "x")
	s.Clock.Advance(15*24*time.Hour + time.Hour)
	s.Caller = s.As("ann")
	expect.Equal(t, "the pages", s.pages("/download/list?limit=2"), []string{"4", ""})
}

func TestUsersListOnlyTheirOwnFiles(t *testing.T) {
	t.Parallel()
	s := start(t, 2)
	for _, name := range []string{"ann2", "an"} {
		if e := s.Add(name).Ask("GET /download/list", "").Want(200); len(e.Files) != 0 || e.User != name {
			t.Errorf("%s sees %s", name, e.Text)
		}
	}
}

func TestBackupListShowsDeletedFiles(t *testing.T) {
	t.Parallel()
	s := start(t, 4)
	for _, id := range []string{"3", "1", "2"} {
		s.backUp(id)
	}
	expect.Equal(t, "the pages", s.pages("/download/list/backup?limit=2"), []string{"3 2", "1"})
	a := s.Ask("GET /download/list/backup?limit=2", "").
		WantHeaders("Link", "<"+s.Base+`/download/list/backup?lang=en&limit=2&after=2>; rel="next"`)
	if link := a.File().LinkURL; !strings.HasPrefix(link, s.Base+"/download/file/backup?lang=en&z=") ||
		s.Get(link) != "content 3" {
		t.Errorf("the link is %q", link)
	}
	expect.Equal(t, "the user area", s.pages("/download/list"), []string{"4"})
}

func TestBackupFilesExpire(t *testing.T) {
	t.Parallel()
	s := start(t, 1)
	link := s.backUp("1")
	s.Clock.Advance(90*24*time.Hour - time.Minute)
	expect.Equal(t, "the bytes", s.Get(link), "content 1")
	s.Clock.Advance(time.Minute)
	s.Send("GET "+link, "").Want(401)
	s.Caller = s.As("ann")
	expect.Equal(t, "the backup list", s.pages("/download/list/backup"), []string{""})
	s.Ask("POST /files/1/restore", "").Want(404)
}
