package file_test

import (
	"strings"
	"testing"

	"ferry/shared/api/apitest"
)

func TestRangeOutsideTheFileGetsAnEnvelope(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("demo", "a password to try")
	e := s.Put(s.Login("demo", "a password to try"), "file=a.txt", "ten bytes!")
	link := strings.TrimPrefix(e.Files[0].LinkURL, s.Base)
	resp := s.Request("GET", link, nil, "Range", "bytes=10-")
	if got := resp.Header.Get("Content-Range"); got != "bytes */10" {
		t.Errorf("Content-Range is %q", got)
	}
	if got := resp.Header.Get("Ferry-Error"); !strings.Contains(got, "10 bytes") {
		t.Errorf("Ferry-Error is %q", got)
	}
	if e := s.Decode(resp, 416); e.Status != 416 || e.Description != "Requested Range Not Satisfiable" {
		t.Errorf("the envelope is %+v", e)
	}
	if got := s.Text(s.Request("GET", link, nil, "Range", "bytes=4-8")); got != "bytes" {
		t.Errorf("a range inside gave %q", got)
	}
}
