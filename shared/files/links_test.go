package files_test

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
)

func TestLinkWorksOnlyWhileFileIsInItsArea(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	first := c.put("file=a.txt", "the content")
	_, gone := c.call("DELETE", "/files/1")
	backup := gone.Files[0]
	if backup.ID != 1 || backup.Name != "a.txt" || backup.Length != 11 || backup.Modified != first.Modified || !strings.Contains(backup.LinkURL, "/download/file/backup?") {
		t.Fatalf("the deletion returned %+v", backup)
	}
	token := func(link string) string { return link[strings.LastIndexByte(link, '=')+1:] }
	if token(first.LinkURL) == token(backup.LinkURL) {
		t.Error("the links of both areas have the same token")
	}
	for what, k := range map[string]struct {
		link string
		want int
	}{
		"the old link":                      {first.LinkURL, 401},
		"the new link":                      {backup.LinkURL, 200},
		"the old token in the backup area":  {c.Base + "/download/file/backup?z=" + token(first.LinkURL), 401},
		"the backup token in the user area": {c.Base + "/download/file?k=" + token(backup.LinkURL), 401},
	} {
		if status, _ := c.get(k.link); status != k.want {
			t.Errorf("after the deletion %s gave status %d, want %d", what, status, k.want)
		}
	}
	_, back := c.call("POST", "/files/1/restore")
	if back.Files[0] != first {
		t.Errorf("after the restoration the file is %+v, want %+v", back.Files[0], first)
	}
	if status, text := c.get(first.LinkURL); status != 200 || text != "the content" {
		t.Errorf("after the restoration the first link gave %d %q", status, text)
	}
	if status, _ := c.get(backup.LinkURL); status != 401 {
		t.Errorf("after the restoration the backup link gave status %d, want 401", status)
	}
	c.wantConsistent(1)
}

func TestLinksAreTheSameInEveryList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := apitest.Open(t, dir, fixedURL)
	s.Base = s.Root + api.Prefix
	alice := s.Add("alice")
	first := alice.Ask("POST /upload?file=a", "1").Want(200).Files
	want := fmt.Sprint(first, alice.Ask("POST /upload?file=b", "2").Want(200).Files)
	list := func() string {
		all := s.Send("GET /download/list", "", "Authorization", "Bearer "+alice.Bearer).Want(200).Files
		return fmt.Sprint(all[1:], all)
	}
	for range 3 {
		if got := list(); got != want {
			t.Fatalf("the list is %s, want %s", got, want)
		}
	}
	s.Close()
	s = apitest.Open(t, dir, fixedURL)
	s.Base = s.Root + api.Prefix
	if got := list(); got != want {
		t.Fatalf("after a restart the list is %s, want %s", got, want)
	}
}

func TestACheckFindsNothingAfterLinksWereChanged(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a&downloads=2&m=x%40example.com", "0123456789")
	k := c.caller()
	for _, request := range []struct{ request, body string }{
		{"POST /files/1/links", `{"password": "open sesame"}`},
		{"PATCH /files/1/links/own", `{"downloads": 3}`},
		{"DELETE /files/1/links/own", ""},
		{"POST /files/1/links/own/renew", ""},
		{"DELETE /files/1/links/own", ""},
		{"PATCH /files/1", `{"name": "b", "expires": "2d"}`},
		{"DELETE /files/1", ""},
		{"POST /files/1/restore", ""},
	} {
		if a := k.Ask(request.request, request.body); a.Code > 201 {
			t.Fatalf("%s: status %d", request.request, a.Code)
		}
		if _, found := c.check(nil); len(found) != 0 {
			t.Errorf("after %s: %v", request.request, found)
		}
	}
}
