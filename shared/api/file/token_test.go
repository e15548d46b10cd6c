package file_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

func TestOnlyTheRightTokenOpensAFile(t *testing.T) {
	t.Parallel()
	s := begin(t)
	_, k, _ := strings.Cut(s.share("kept.txt", "kept"), "k=")
	s.share("gone.txt", "gone")
	_, z, _ := strings.Cut(s.backUp("2"), "z=")
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(k, "A")]
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/download/file?k=" + k:                           {200, "kept"},
		"/download/file/backup?z=" + z:                    {200, "gone"},
		"/download/file?x=1&k=" + k + "&lang=it":          {200, "kept"},
		"/download/file":                                  {400, ""},
		"/download/file?k=":                               {400, ""},
		"/download/file/backup":                           {400, ""},
		"/download/file?z=" + k:                           {400, ""}, // the other parameter
		"/download/file/backup?k=" + z:                    {400, ""},
		"/download/file?k=" + z:                           {401, ""}, // the other area
		"/download/file/backup?z=" + k:                    {401, ""},
		"/download/file?k=" + strings.Repeat("A", 43):     {401, ""},
		"/download/file?k=..%2F%00":                       {401, ""},
		"/download/file?k=" + k[:20]:                      {401, ""},
		"/download/file?k=" + k + "A":                     {401, ""},
		"/download/file?k=" + k[:42] + last:               {401, ""},
		"/download/file?k=" + strings.ToUpper(k):          {401, ""},
		"/download/file?k=" + strings.Repeat("A", 20_000): {401, ""},
		"/download/file?k=%zz":                            {400, ""},
	} {
		if strings.Contains(path, "%zz") && s.InStack() {
			continue // the gateway parses queries
		}
		a := s.Send("GET "+path, "").Want(want.status)
		s.Send("GET "+path, "", "Accept", "text/html").Want(want.status)
		s.Send("HEAD "+path, "").Want(want.status)
		if want.status == 200 {
			apitest.Equal(t, path, a.Text, want.body)
		}
	}
	if log := s.Log.String(); strings.Contains(log, k) || strings.Contains(log, z) {
		t.Error("a token is in the log")
	}
}

func TestAFileThatExpiresIsGoneBeforeTheSweep(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "x")
	s.Clock.Advance(30*24*time.Hour - time.Minute)
	apitest.Equal(t, "on the last day", s.Get(link), "x")
	s.Clock.Advance(2 * time.Minute)
	s.Send("GET "+link, "").Want(401)
	s.Send("GET "+link, "", "Accept", "text/html").Want(401)
	s.Caller = s.As("ann")
	s.Ask("GET /files/1", "").Want(404)
	s.Ask("DELETE /files/1", "").Want(404)
}
