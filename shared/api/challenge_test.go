package api_test

import (
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/api/endpoint"
)

// A browser that is challenged for Basic asks its user for a password, whatever
// the address is about.
func TestAPasswordIsAskedForWhereItHelps(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for route, basic := range map[string]bool{
		"POST /auth/login": true, "POST /auth/first": true, "POST /upload?file=x": true, "GET /download/list": true, "GET /download/list/backup": true,
		"DELETE /files/1": true, "POST /files/1/restore": true,
		"GET /download/file?k=x": false, "HEAD /download/file?k=x": false, "GET /download/file/backup?z=x": false, "GET /auth/forget?u=x": false, "POST /auth/change?k=x": false,
	} {
		method, path, _ := strings.Cut(route, " ")
		resp := s.Request(method, path, nil)
		want := `Bearer realm="ferry"`
		if basic {
			want = `Basic realm="ferry", charset="UTF-8"` + "\n" + want
		}
		if got := strings.Join(resp.Header.Values("WWW-Authenticate"), "\n"); resp.StatusCode != 401 || got != want {
			t.Errorf("%s is answered with %d and %q, want %q", route, resp.StatusCode, got, want)
		}
	}
}

func TestTheHeadOfALargeFileIsAnsweredHere(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(set *endpoint.Settings, _ *api.Options) { set.RedirectOver = 3 })
	s.AddUser("alice", password)
	link := strings.TrimPrefix(s.Put(s.Login("alice", password), "file=x", "large").Files[0].LinkURL, s.Base)
	s.Calls.Reset()
	resp := s.Request("HEAD", link, nil)
	if resp.StatusCode != 200 || resp.ContentLength != 5 || s.Calls.Reset()["blob.SignGet"] != 0 {
		t.Errorf("HEAD is answered with %d, length %d", resp.StatusCode, resp.ContentLength)
	}
	if resp := s.Request("GET", link, nil, "Accept", "application/json"); resp.StatusCode != 200 {
		t.Errorf("the record is answered with %d", resp.StatusCode)
	}
	s.Request("GET", link, nil)
	if s.Calls.Reset()["blob.SignGet"] != 1 {
		t.Error("GET does not ask for an address of the store")
	}
}
