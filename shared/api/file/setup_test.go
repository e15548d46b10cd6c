package file_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/keys"
	"ferry/shared/service"
)

// rowsOf returns the cells of a table.
func rowsOf(table string) (rows [][]string) {
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		rows = append(rows, regexp.MustCompile(`\s*\|\s*`).Split(strings.TrimSpace(line), -1))
	}
	return rows
}

// headersOf returns the names and values of headers that cells have.
func headersOf(cells []string) (pairs []string) {
	for _, cell := range cells {
		name, value, _ := strings.Cut(cell, ":")
		pairs = append(pairs, name, strings.TrimSpace(value))
	}
	return pairs
}

// sharer is a user who shares files.
type sharer struct{ apitest.Caller }

// begin starts a service and returns ann.
func begin(t testing.TB, options ...apitest.Option) sharer {
	t.Helper()
	return sharer{apitest.Begin(t, options...)}
}

// share stores a file and returns its link.
func (s sharer) share(name, content string, headers ...string) string {
	s.Helper()
	return s.Upload("file="+url.QueryEscape(name), content, headers...).LinkURL
}

// backUp deletes a file and returns its backup link.
func (s sharer) backUp(id string) string {
	s.Helper()
	return s.Ask("DELETE /files/"+id, "").Want(200).File().LinkURL
}

// stored returns what is stored about a link's use.
func (s sharer) stored(link string) (item struct{ Downloads, Previews, Given int }) {
	s.Helper()
	_, token, _ := strings.Cut(link, "k=")
	text := s.Items()["link#"+keys.HashToken(token)+" link"]
	expect.NoErr(s.TB, json.Unmarshal([]byte(text), &item))
	return item
}

// wantDownloads waits until n downloads are counted, which takes a moment, and fails if
// the number is different. Counts are written in order, so a wrong one cannot come after
// that of a later download.
func (s sharer) wantDownloads(what, link string, n int) {
	s.Helper()
	expect.Eventually(func() bool { return s.stored(link).Downloads >= n })
	expect.Equal(s.TB, "downloads, "+what, s.stored(link).Downloads, n)
}

// signing is a store that signs its addresses.
type signing struct{ blob.Store }

func (signing) SignGet(context.Context, blob.Area, string, blob.Signed) (string, error) {
	return "https://store.example.com/x", nil
}

func (signing) CopyRange(context.Context, blob.Area, string, int64, int64, string) error { return nil }

// onStore returns the ports of a service whose store signs addresses, to which downloads are redirected.
func (s sharer) onStore() *api.Ports {
	p, set := s.Data.Ports, s.Service.Settings
	p.Blobs, set.RedirectOver = signing{p.Blobs}, 1
	return &api.Ports{Service: service.New(p, set)}
}

// redirecting returns a function that asks for a file, or a range of it, where downloads
// are redirected to the store.
func (s sharer) redirecting() func(link, source, asked string) *httptest.ResponseRecorder {
	s.Helper()
	s.InProcess("its store signs addresses")
	h := file.Download().New(s.onStore())
	return func(link, source, asked string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", link, nil)
		r.RemoteAddr = source
		r.Header = http.Header{"User-Agent": {"curl/8"}, "Range": {asked}}
		h.ServeHTTP(w, r)
		return w
	}
}
