package file_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
)

const password = "a password to try"

// sharer is a service with a user who uploads.
type sharer struct {
	*apitest.Server
	bearer string
}

func newSharer(t *testing.T, options ...apitest.Option) sharer {
	t.Helper()
	s := apitest.New(t, options...)
	s.AddUser("ann", password)
	return sharer{s, s.Login("ann", password)}
}

// begin returns a service with the users alice and bob.
func begin(t *testing.T, options ...apitest.Option) *apitest.Server {
	t.Helper()
	s := apitest.New(t, options...)
	for _, name := range []string{"alice", "bob"} {
		s.AddUser(name, password)
	}
	return s
}

// put stores a file and returns the path of its link.
func (s sharer) put(name, content string, headers ...string) string {
	s.Helper()
	headers = append(headers, "Authorization", "Bearer "+s.bearer)
	e := s.Decode(s.Request("POST", "/upload?file="+url.QueryEscape(name), strings.NewReader(content), headers...), 200)
	return strings.TrimPrefix(e.Files[0].LinkURL, s.Base)
}

// ask sends a request, such as GET /download/list, of the user who uploads.
func (s sharer) ask(route string, status int) apitest.Envelope {
	s.Helper()
	method, path, _ := strings.Cut(route, " ")
	return s.Decode(s.Request(method, path, nil, "Authorization", "Bearer "+s.bearer), status)
}

// backUp deletes a file and returns the path of its backup link.
func (s sharer) backUp(id string) string {
	s.Helper()
	return strings.TrimPrefix(s.ask("DELETE /files/"+id, 200).Files[0].LinkURL, s.Base)
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
	waitFor(func() bool { return s.downloads(link) >= n })
	if got := s.downloads(link); got != n {
		s.Errorf("%s: %d downloads are counted, want %d", what, got, n)
	}
}

// waitFor waits for a condition, for at most 10 s, and reports whether it holds.
func waitFor(done func() bool) bool {
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// signing is a store that signs its addresses.
type signing struct{ blob.Store }

func (signing) SignGet(context.Context, blob.Area, string, blob.Signed) (string, error) {
	return "https://store.example.com/x", nil
}

// redirecting returns a function that asks for a file, or a range of it, where downloads
// are redirected to the store.
func (s sharer) redirecting() func(link, source, asked string) *httptest.ResponseRecorder {
	s.Helper()
	s.InProcess("its store signs addresses")
	p := s.Data.Ports.Clone()
	p.Blobs, p.RedirectOver = signing{p.Blobs}, 1
	h := file.Download().New(p)
	return func(link, source, asked string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1"+link, nil)
		r.RemoteAddr = source
		r.Header = http.Header{"User-Agent": {"curl/8"}, "Range": {asked}}
		h.ServeHTTP(w, r)
		return w
	}
}

func wantHeaders(t testing.TB, what string, h http.Header, pairs ...string) {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := h.Get(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s: %s is %q, want %q", what, pairs[i], got, pairs[i+1])
		}
	}
}
