package file_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/apitest"
	"ferry/shared/auth"
)

// sharer is a service with a user who uploads.
type sharer struct {
	*apitest.Server
	bearer string
}

func newSharer(t *testing.T, options ...apitest.Option) sharer {
	t.Helper()
	s := apitest.New(t, options...)
	s.AddUser("ann", "a password for a test")
	return sharer{s, s.Login("ann", "a password for a test")}
}

// put stores a file and returns the path of its link.
func (s sharer) put(name, content string, headers ...string) string {
	s.Helper()
	headers = append(headers, "Authorization", "Bearer "+s.bearer)
	e := s.Decode(s.Request("POST", "/upload?file="+url.QueryEscape(name), strings.NewReader(content), headers...), 200)
	return strings.TrimPrefix(e.Files[0].LinkURL, s.Base)
}

// backUp deletes a file and returns the path of its backup link.
func (s sharer) backUp(id string) string {
	s.Helper()
	e := s.Decode(s.Request("DELETE", "/files/"+id, nil, "Authorization", "Bearer "+s.bearer), 200)
	return strings.TrimPrefix(e.Files[0].LinkURL, s.Base)
}

// downloads returns how many downloads of a link are counted.
func (s sharer) downloads(link string) int { s.Helper(); return s.storedUse(link).Downloads }

// storedUse returns what is stored about a link's use.
func (s sharer) storedUse(link string) (item struct{ Downloads, Previews, Given int }) {
	s.Helper()
	u, err := url.Parse(link)
	if err != nil {
		s.Fatalf("reading a link: %v", err)
	}
	text, found := s.Items()["link#"+auth.HashToken(u.Query().Get("k"))+" link"]
	if err := json.Unmarshal([]byte(text), &item); err != nil || !found {
		s.Fatalf("reading a link's item: %v", err)
	}
	return item
}

// wantDownloads waits until n downloads are counted, which takes a moment, and fails if
// the number is different. Counts are written in order, so a wrong one cannot come after
// that of a later download.
func (s sharer) wantDownloads(what, link string, n int) {
	s.Helper()
	for end := time.Now().Add(10 * time.Second); s.downloads(link) < n && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if got := s.downloads(link); got != n {
		s.Errorf("%s: %d downloads are counted, want %d", what, got, n)
	}
}

func wantHeaders(t *testing.T, what string, h http.Header, pairs ...string) {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := h.Get(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s: %s is %q, want %q", what, pairs[i], got, pairs[i+1])
		}
	}
}
