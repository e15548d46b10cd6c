package file_test

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyTheRightTokenOpensAFile(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("kept.txt", "kept")
	s.put("gone.txt", "gone")
	backup := s.backUp("2")
	_, k, _ := strings.Cut(link, "k=")
	_, z, _ := strings.Cut(backup, "z=")
	if k == "" || z == "" || k == z {
		t.Fatalf("the tokens are %q and %q", k, z)
	}
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(k, "A")]
	for _, c := range []struct {
		what, path string
		status     int
		body       string
	}{
		{"a file's token", "/download/file?k=" + k, 200, "kept"},
		{"a backup's token", "/download/file/backup?z=" + z, 200, "gone"},
		{"a token and another parameter", "/download/file?x=1&k=" + k + "&lang=it", 200, "kept"},
		{"no token", "/download/file", 400, ""},
		{"an empty token", "/download/file?k=", 400, ""},
		{"no backup token", "/download/file/backup", 400, ""},
		{"a token in the other parameter", "/download/file?z=" + k, 400, ""},
		{"a backup token in the other parameter", "/download/file/backup?k=" + z, 400, ""},
		{"a backup token for the user area", "/download/file?k=" + z, 401, ""},
		{"a file's token for the backup area", "/download/file/backup?z=" + k, 401, ""},
		{"an unknown token", "/download/file?k=" + strings.Repeat("A", 43), 401, ""},
		{"a malformed token", "/download/file?k=..%2F%00", 401, ""},
		{"half a token", "/download/file?k=" + k[:20], 401, ""},
		{"a longer token", "/download/file?k=" + k + "A", 401, ""},
		{"a token with another end", "/download/file?k=" + k[:42] + last, 401, ""},
		{"a token in capitals", "/download/file?k=" + strings.ToUpper(k), 401, ""},
		{"a very long token", "/download/file?k=" + strings.Repeat("A", 20_000), 401, ""},
		{"a malformed query", "/download/file?k=%zz", 400, ""},
	} {
		if strings.Contains(c.path, "%zz") && s.InStack() {
			continue // the gateway parses queries
		}
		for _, accept := range []string{"", "text/html"} {
			resp := s.Request("GET", c.path, nil, "Accept", accept)
			if c.status != 200 {
				if e := s.Decode(resp, c.status); len(e.Files) > 0 || resp.Header.Get("Ferry-Error") == "" {
					t.Errorf("%s: the envelope is %+v", c.what, e)
				}
			} else if got := s.Text(resp); accept == "" && got != c.body {
				t.Errorf("%s: %d with %q", c.what, resp.StatusCode, got)
			}
		}
		if resp := s.Request("HEAD", c.path, nil); resp.StatusCode != c.status {
			t.Errorf("%s: HEAD has the status %d", c.what, resp.StatusCode)
		}
	}
	if log := s.Log.String(); strings.Contains(log, k) || strings.Contains(log, z) {
		t.Error("a token is in the log")
	}
}

func TestLinkDiesWithItsFile(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("a.txt", "x")
	s.Clock.Advance(30*24*time.Hour - time.Minute)
	if got := s.Text(s.Request("GET", link, nil)); got != "x" {
		t.Errorf("on the last day the link gives %q", got)
	}
	s.Clock.Advance(2 * time.Minute) // without a sweep
	s.Decode(s.Request("GET", link, nil), 401)
	s.Decode(s.Request("GET", link, nil, "Accept", "text/html"), 401)
}
