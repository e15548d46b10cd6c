package local_test

import (
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

func TestHeadOfALargeFileIsNotRedirected(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(set *api.Settings, _ *local.ServiceOptions) { set.RedirectOver = 3 })
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
