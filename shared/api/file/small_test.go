package file_test

import (
	"maps"
	"strings"
	"testing"

	"ferry/shared/api/apitest"
)

// TestSmallFileIsSentLikeAnyOther compares the short way of plain requests
// with the way of all others.
func TestSmallFileIsSentLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("demo", "a password to try")
	bearer := s.Login("demo", "a password to try")
	for name, size := range map[string]int{"empty": 0, "small": 5000, "large": 100_000} {
		e := s.Put(bearer, "file="+name, strings.Repeat("x", size))
		link := strings.TrimPrefix(e.Files[0].LinkURL, s.Base)
		plain, other := s.Request("GET", link, nil), s.Request("GET", link, nil, "If-Match", "*")
		for _, r := range []map[string][]string{plain.Header, other.Header} {
			delete(r, "Date")
			delete(r, "X-Request-Id")
		}
		if !maps.EqualFunc(plain.Header, other.Header, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
			t.Errorf("%s: the headers are %v and %v", name, plain.Header, other.Header)
		}
		if a, b := s.Text(plain), s.Text(other); a != b || len(a) != size {
			t.Errorf("%s: the bodies have %d and %d bytes", name, len(a), len(b))
		}
	}
}
