package file_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
)

func TestDownloadsOfTheLastByteCount(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	counted := map[string]int{}
	whats := map[string]string{}
	for size, text := range map[string]string{"a small file": "0123456789", "a large file": content()} {
		for _, k := range []struct {
			method  string
			headers []string
			query   string
			counts  int
		}{
			{"HEAD", nil, "", 0},
			{"GET", []string{"Range", "bytes=0-1"}, "", 0},
			{"GET", []string{"Range", "bytes=0-1,3-4"}, "", 0},
			{"HEAD", []string{"Range", "bytes=1-"}, "", 0},
			{"GET", []string{"Range", "bytes=1-", "User-Agent", "Twitterbot/1.0"}, "", 0},
			{"GET", []string{"Range", "bytes=0-"}, "", 1},
			{"GET", []string{"Range", "bytes=1-"}, "", 1},
			{"GET", []string{"Range", "bytes=-1"}, "", 1},
			{"GET", []string{"Range", "bytes=0-1,-1"}, "", 1},
			{"GET", []string{"Range", "bytes=5-,0-2"}, "", 1},
			{"GET", []string{"Range", "bytes=5-7,0-2"}, "", 0},
			{"GET", []string{"Range", "bytes=99999999-,0-2"}, "", 0},
			{"GET", []string{"Range", "bytes=99999999-"}, "", 0},
			{"GET", []string{"If-None-Match", "*"}, "", 0},
			{"GET", []string{"If-Match", `"another"`}, "", 0},
			{"GET", []string{"Accept", "text/html"}, "", 0},
			{"GET", []string{"Accept", "application/json"}, "", 0},
			{"HEAD", []string{"Accept", "text/html"}, "&download=1", 0},
			{"GET", []string{"User-Agent", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"}, "", 0},
			{"GET", []string{"User-Agent", "facebookexternalhit/1.1", "Accept", "text/html"}, "&download=1", 0},
			{"GET", []string{"User-Agent", ""}, "", 0},
			{"GET", []string{"Sec-Purpose", "prefetch;prerender"}, "&download=1", 0},
			{"GET", nil, "", 1},
			{"GET", []string{"Accept", "text/html"}, "&download=1", 1},
			{"GET", []string{"If-Match", "*"}, "", 1},
			{"GET", []string{"Range", "bytes=0-1", "If-Range", `"another"`}, "", 1},
		} {
			link := s.put("a.txt", text)
			resp := s.Request(k.method, link+k.query, nil, k.headers...)
			s.Request("GET", link, nil) // this one counts
			counted[link] = k.counts + 1
			whats[link] = fmt.Sprintf("%s, %s %v%s (%d)", size, k.method, k.headers, k.query, resp.StatusCode)
		}
	}
	for link, n := range counted {
		s.wantDownloads(whats[link], link, n)
	}
}

func TestInterruptedDownloadDoesNotCount(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	s.InProcess("a function takes no body of this size, and the store sends such a file")
	const size = 16 << 20 // more than the buffers between server and client hold
	link := s.put("big", strings.Repeat("x", size))
	conn, err := net.Dial("tcp", s.HTTP.Listener.Addr().String())
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1%s HTTP/1.1\r\nHost: x\r\nUser-Agent: curl/8\r\n\r\n", link)
	if _, err := io.CopyN(io.Discard, conn, 100_000); err != nil {
		t.Fatalf("reading the beginning: %v", err)
	}
	conn.Close()
	if !waitFor(func() bool { return strings.Contains(s.Log.String(), "path=/v1/download/file ") }) {
		t.Fatalf("the download has not ended; the log:\n%s", s.Log)
	}
	s.Request("GET", link, nil)
	s.wantDownloads("an interrupted download and a whole one", link, 1)
}

// TestRobotRequestsCountAsPreviews uses a new link for each request.
func TestRobotRequestsCountAsPreviews(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	for what, k := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"the page":          {"GET", []string{"User-Agent", "Twitterbot/1.0", "Accept", "text/html"}, 1},
		"the record":        {"GET", []string{"User-Agent", "Twitterbot/1.0", "Accept", "application/json"}, 1},
		"the bytes":         {"GET", []string{"User-Agent", "Twitterbot/1.0"}, 1},
		"some of the bytes": {"GET", []string{"User-Agent", "Twitterbot/1.0", "Range", "bytes=0-1"}, 1},
		"the headers":       {"HEAD", []string{"User-Agent", "Twitterbot/1.0"}, 0},
		"a person's page":   {"GET", []string{"Accept", "text/html"}, 0},
		"a person's bytes":  {"GET", nil, 0},
	} {
		link := s.put("a.txt", "0123456789")
		s.Request(k.method, link, nil, k.headers...)
		s.Request("GET", link, nil, "User-Agent", "WhatsApp/2.23.20.0 A") // this one counts
		waitFor(func() bool { return s.storedUse(link).Previews > k.want })
		if got := s.storedUse(link).Previews; got != k.want+1 {
			t.Errorf("%s: %d previews, want %d", what, got, k.want+1)
		}
	}
}

func TestEmptyDownloadCounts(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("empty", "")
	s.Request("HEAD", link, nil) // this does not count
	if resp := s.Request("GET", link, nil); resp.StatusCode != 200 || s.Text(resp) != "" {
		t.Errorf("status %d", resp.StatusCode)
	}
	s.wantDownloads("a file of 0 bytes", link, 1)
}

// TestResumedDownloadCounts uses the same connection, and so the same source.
func TestResumedDownloadCounts(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("a.txt", "0123456789")
	get := func(from, to string) {
		if resp := s.Request("GET", link, nil, "Range", "bytes="+from+"-"+to); resp.StatusCode != 206 {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
	get("0", "4")
	s.wantDownloads("the beginning", link, 0)
	get("5", "")
	s.wantDownloads("the rest", link, 1)
	get("3", "")
	get("8", "9")
	s.wantDownloads("other connections of the same downloader", link, 1)
	s.Request("GET", link, nil)
	s.wantDownloads("the whole file", link, 2)
	s.Clock.Advance(time.Hour)
	get("5", "")
	s.wantDownloads("a resumed download after an hour", link, 3)
}

func TestRedirectCountsOncePerSourceAndLooksForTheBytes(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	get := s.redirecting()
	link := s.put("a.txt", "0123456789")
	key := s.Objects(blob.Files)[0]
	for _, source := range []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "192.0.2.1:3", "192.0.2.2:4"} {
		if w := get(link, source, ""); w.Code != 302 || w.Header().Get("X-Amz-Checksum-Crc64nvme") == "" {
			t.Errorf("status %d, headers %v", w.Code, w.Header())
		}
	}
	s.wantDownloads("redirects to two sources", link, 2)
	for _, stored := range [][]byte{nil, []byte("012345678")} {
		s.replace(key, stored)
		if w := get(link, "192.0.2.3:1", ""); w.Code != 500 || w.Header().Get("Location") != "" {
			t.Errorf("with %q in the store: status %d, headers %v", stored, w.Code, w.Header())
		}
	}
}
