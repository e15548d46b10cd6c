package file_test

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

func TestDownloadsOfTheLastByteCount(t *testing.T) {
	t.Parallel()
	s := begin(t)
	const table = `
		0 | HEAD
		0 | GET | Range: bytes=0-1
		0 | GET | Range: bytes=0-1,3-4
		0 | HEAD | Range: bytes=1-
		0 | GET | Range: bytes=1- | User-Agent: Twitterbot/1.0
		1 | GET | Range: bytes=0-
		1 | GET | Range: bytes=1-
		1 | GET | Range: bytes=-1
		1 | GET | Range: bytes=0-1,-1
		1 | GET | Range: bytes=5-,0-2
		0 | GET | Range: bytes=5-7,0-2
		0 | GET | Range: bytes=99999999-,0-2
		0 | GET | Range: bytes=99999999-
		0 | GET | If-None-Match: *
		0 | GET | If-Match: "another"
		0 | GET | Accept: text/html | Sec-Fetch-Mode: navigate
		0 | GET | Accept: application/json
		0 | HEAD &download=1 | Accept: text/html | Sec-Fetch-Mode: navigate
		0 | GET &download=1 | User-Agent: facebookexternalhit/1.1 | Accept: text/html
		0 | GET &download=1 | Sec-Purpose: prefetch;prerender
		1 | GET
		1 | GET &download=1 | Accept: text/html | Sec-Fetch-Mode: navigate
		1 | GET | If-Match: *
		1 | GET | Range: bytes=0-1 | If-Range: "another"`
	counted := map[string]int{}
	whats := map[string]string{}
	for size, text := range map[string]string{"a small file": "0123456789", "a large file": content()} {
		for _, cells := range rowsOf(table) {
			link := s.share("a.txt", text)
			method, query, _ := strings.Cut(cells[1], " ")
			a := s.Send(method+" "+link+query, "", headersOf(cells[2:])...)
			s.Send("GET "+link, "") // this one counts
			n, err := strconv.Atoi(cells[0])
			expect.NoErr(t, err)
			counted[link] = n + 1
			whats[link] = fmt.Sprintf("%s, %v (%d)", size, cells, a.Code)
		}
	}
	empty := s.share("empty", "")
	s.Send("HEAD "+empty, "") // this does not count
	s.Get(empty)
	counted[empty], whats[empty] = 1, "a file of 0 bytes"
	for link, n := range counted {
		s.wantDownloads(whats[link], link, n)
	}
}

func TestInterruptedDownloadDoesNotCount(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("a function takes no body of this size, and the store sends such a file")
	const size = 16 << 20 // more than the buffers between server and client hold
	link := s.share("big", strings.Repeat("x", size))
	conn, err := net.Dial("tcp", s.HTTP.Listener.Addr().String())
	expect.NoErr(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: curl/8\r\n\r\n", strings.TrimPrefix(link, s.Root))
	_, err = io.CopyN(io.Discard, conn, 100_000)
	expect.NoErr(t, err)
	conn.Close()
	if !expect.Eventually(func() bool { return strings.Contains(s.Log.String(), "path=/v1/download/file ") }) {
		t.Fatalf("the download has not ended; the log:\n%s", s.Log)
	}
	s.Get(link)
	s.wantDownloads("an interrupted download and a whole one", link, 1)
}

// TestRobotRequestsCountAsPreviews uses a new link for each request.
func TestRobotRequestsCountAsPreviews(t *testing.T) {
	t.Parallel()
	s := begin(t)
	const table = `
		1 | the page          | GET | User-Agent: Twitterbot/1.0 | Accept: text/html | Sec-Fetch-Mode: navigate
		1 | the record        | GET | User-Agent: Twitterbot/1.0 | Accept: application/json
		1 | the bytes         | GET | User-Agent: Twitterbot/1.0
		1 | some of the bytes | GET | User-Agent: Twitterbot/1.0 | Range: bytes=0-1
		0 | the headers       | HEAD | User-Agent: Twitterbot/1.0
		0 | a person's page   | GET | Accept: text/html | Sec-Fetch-Mode: navigate
		0 | a person's bytes  | GET`
	for _, cells := range rowsOf(table) {
		link := s.share("a.txt", "0123456789")
		s.Send(cells[2]+" "+link, "", headersOf(cells[3:])...)
		s.Send("GET "+link, "", "User-Agent", "WhatsApp/2.23.20.0 A") // this one counts
		want, err := strconv.Atoi(cells[0])
		expect.NoErr(t, err)
		expect.Eventually(func() bool { return s.stored(link).Previews > want })
		expect.Equal(t, "previews, "+cells[1], s.stored(link).Previews, want+1)
	}
}

// TestResumedDownloadCounts uses the same connection, and so the same source.
func TestResumedDownloadCounts(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("the functions remember the source, from a link of another test with the same token")
	link := s.share("a.txt", "0123456789")
	get := func(ranges ...string) {
		for _, r := range ranges {
			s.Send("GET "+link, "", "Range", "bytes="+r).Want(206)
		}
	}
	get("0-4")
	s.wantDownloads("the beginning", link, 0)
	get("5-")
	s.wantDownloads("the rest", link, 1)
	get("3-", "8-9")
	s.wantDownloads("other connections of the same downloader", link, 1)
	s.Get(link)
	s.wantDownloads("the whole file", link, 2)
	s.Clock.Advance(time.Hour)
	get("5-")
	s.wantDownloads("a resumed download after an hour", link, 3)
}

func TestNobodyIsRedirectedToLostBytes(t *testing.T) {
	t.Parallel()
	s := begin(t)
	get := s.redirecting()
	link := s.share("a.txt", "0123456789")
	key := s.Objects(blob.Files)[0]
	for _, stored := range [][]byte{nil, []byte("012345678")} {
		s.replace(key, stored)
		w := get(link, "192.0.2.3:1", "")
		if w.Code != 500 || w.Header().Get("Location") != "" {
			t.Errorf("with %q in the store: status %d, headers %v", stored, w.Code, w.Header())
		}
		wantLost(t, w.Header())
	}
}

// TestConcurrentFirstDownloadsSendOneReceipt tests conflicting transactions, and so also
// runs with the cloud's table.
func TestConcurrentFirstDownloadsSendOneReceipt(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a&notify=1", "content").LinkURL
	for range 2 { // the second time it is no longer the first download
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				expect.Equal(t, "the content", s.Send("GET "+link, "", "User-Agent", "curl/8").Text, "content")
			})
		}
		wg.Wait()
	}
	if all := s.Outbox(); len(all) != 1 || all[0].Kind != "receipt" || all[0].To != "ann@example.com" {
		t.Errorf("the receipts are %+v", all)
	}
}
