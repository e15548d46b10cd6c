package file_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/boot/expect"
	"ferry/shared/keys"
)

// peer is a program at an address.
type peer struct {
	sharer
	handler http.Handler
	address string
	headers []string
}

// peer returns curl at an address.
func (s sharer) peer(address string) peer {
	s.Helper()
	s.InProcess("the emulator's gateway has no addresses but this machine's")
	return peer{s, s.HTTP.Config.Handler, address, []string{"User-Agent", "curl/8.14.1"}}
}

// send checks the status of a request with these headers, which are pairs.
func (p peer) send(want int, request string, headers ...string) http.Header {
	p.Helper()
	method, link, _ := strings.Cut(request, " ")
	r, w := httptest.NewRequest(method, link, nil), httptest.NewRecorder()
	r.RemoteAddr = p.address
	headers = append(p.headers[:2:2], headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	p.handler.ServeHTTP(w, r)
	expect.Equal(p.TB, fmt.Sprint(p.address, " ", request, " ", headers), w.Code, want)
	return w.Header()
}

// take takes a download of a link with a limit, and returns the address with the claim.
func (p peer) take(link string, headers ...string) string {
	p.Helper()
	address := p.send(302, "GET "+link, headers...).Get("Location")
	p.send(200, "GET "+address)
	return address
}

// resume asks for what comes after the fifth byte.
func (p peer) resume(want int, link string, headers ...string) http.Header {
	p.Helper()
	return p.send(want, "GET "+link, append(headers, "Range", "bytes=5-")...)
}

const here = "203.0.113.5:1000"

// TestWhatBeginsLaterGoesOnWithADownload is about a link of which somebody took one of two downloads, and then another
// took the other.
func TestWhatBeginsLaterGoesOnWithADownload(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a.txt&downloads=2", "0123456789").LinkURL
	p := s.peer(here)
	p.take(link)
	head := p.send(200, "HEAD "+link)
	known := strings.NewReplacer("ETAG", head.Get("ETag"), "MODIFIED", head.Get("Last-Modified"))
	const table = `
		206 | the rest                               | GET bytes=5-
		206 | from another port                      | GET bytes=5-     | from: 203.0.113.5:9
		206 | a part                                 | GET bytes= 1 - 3
		206 | the last bytes                         | GET bytes=-5
		206 | two parts                              | GET bytes=1-2,5-
		206 | the headers of the rest                | HEAD bytes=5-
		206 | the rest of the same file              | GET bytes=5-     | If-Range: ETAG
		206 | the rest of the same, by its date      | GET bytes=5-     | If-Range: MODIFIED
		206 | the rest, as HTML                      | GET bytes=5-     | Accept: text/html
		302 | the rest, or all of another file       | GET bytes=5-     | If-Range: "x"
		302 | the rest, or all, by a date            | GET bytes=5-     | If-Range: Mon, 02 Jan 2006 15:04:05 GMT
		302 | all                                    | GET
		302 | all, as a range                        | GET bytes=0-
		302 | all, as the last bytes                 | GET bytes=-10
		302 | more, as the last bytes                | GET bytes=-99
		302 | the rest and the beginning             | GET bytes=5-,0-2
		302 | more than all, which is answered whole | GET bytes=1-,1-
		302 | what is beyond the end                 | GET bytes=10-
		302 | nothing                                | GET bytes=-0
		302 | another unit                           | GET lines=5-
		302 | what nobody can read                   | GET bytes=5-x
		302 | another address                        | GET bytes=5-     | from: 203.0.113.6:1000
		302 | no address                             | GET bytes=5-     | from: @
		302 | another program                        | GET bytes=5-     | User-Agent: Wget/1.25.0
		403 | a program without a name               | GET bytes=5-     | User-Agent:
		303 | a robot                                | GET bytes=5-     | User-Agent: Slackbot 1.0
		303 | a browser that prefetches              | GET bytes=5-     | Sec-Purpose: prefetch`
	check := func(used bool) {
		for _, cells := range rowsOf(known.Replace(table)) {
			method, ranges, _ := strings.Cut(cells[2], " ")
			asker, headers := p, headersOf(cells[3:])
			if len(headers) > 0 && headers[0] == "from" {
				asker.address = headers[1]
			}
			want, err := strconv.Atoi(cells[0])
			expect.NoErr(t, err)
			if used && want != 206 {
				want = 401
			}
			asker.send(want, method+" "+link, append(headers, "Range", ranges)...)
		}
	}
	check(false)
	expect.Equal(t, "what is left", *s.links("1")[0].Left, 1)
	s.peer("203.0.113.7:1").take(link)
	check(true)
	p.resume(401, link, "Accept", "application/json") // the record is no content
	s.Clock.Advance(24*time.Hour - time.Minute)
	p.resume(206, link)
	s.Clock.Advance(time.Minute)
	p.resume(401, link)
}

func TestADownloadIsResumedWithThePasswordAndNotBeyondItsEnd(t *testing.T) {
	t.Parallel()
	s := begin(t)
	p := s.peer(here)
	locked := s.share("a", "0123456789", "Ferry-Link-Password", right)
	s.Ask("PATCH /files/1/links/own", `{"downloads":1}`).Want(200)
	p.take(locked, "Ferry-Link-Password", right)
	for password, want := range map[string]int{"": 401, "wrong": 401, right: 206} {
		p.resume(want, locked, "Ferry-Link-Password", password)
	}
	link := s.Upload("file=b&downloads=1", "0123456789").LinkURL
	p.take(link)
	p.resume(206, link)
	s.Ask("DELETE /files/2/links/own", "").Want(200)
	p.resume(401, link)
	link = s.Upload("file=c&downloads=1&expires=1h", "0123456789").LinkURL
	p.take(link)
	s.Clock.Advance(2 * time.Hour)
	p.resume(401, link)
}

// TestBehindAProxyOnThisMachineNobodyIsKnown: all who come through it would be one.
func TestBehindAProxyOnThisMachineNobodyIsKnown(t *testing.T) {
	t.Parallel()
	s := begin(t)
	p := s.peer("127.0.0.1:1")
	for header, want := range map[string]int{"X-Forwarded-For": 401, "Via": 401, "X-Other": 206} {
		link := s.Upload("file=a&downloads=1", "0123456789").LinkURL
		p.take(link)
		p.resume(want, link, header, "1.1 proxy")
	}
}

func TestAResumedEntryAndARedirectTakeNoDownload(t *testing.T) {
	t.Parallel()
	s := begin(t)
	p := s.peer(here)
	tree := s.bundle(`,"downloads":1`, pack(t, "a", "0123456789", "b", "0123456")).Want(200).File().LinkURL
	p.take(tree + "&entry=a")
	for asked, want := range map[string]int{"&entry=a": 206, "&entry=b": 206, "": 206, "&entries": 401, "&about": 401} {
		p.resume(want, tree+asked)
	}
	for _, ranges := range []string{"bytes=0-", "bytes=-8", "bytes=1-,1-"} { // of the entry b this is all
		p.send(401, "GET "+tree+"&entry=b", "Range", ranges)
	}
	link, free := s.Upload("file=a&downloads=1", "0123456789").LinkURL, s.share("b", "0123456789")
	p.take(link)
	s.Calls.Reset()
	p.resume(206, link)
	calls := s.Calls.Reset()
	p.resume(206, free)
	expect.Equal(t, "calls, as for a link without a limit", calls, s.Calls.Reset())
	p.handler = file.Download().New(s.onStore())
	expect.Equal(t, "a redirect", p.resume(302, link).Get("Location"), "https://store.example.com/x")
	p.address = "203.0.113.6:1"
	p.resume(401, link)
}

// TestALinkRemembersTheLastTwentyWhoTookADownload, also if they come at once, and none of them can be read from the table.
func TestALinkRemembersTheLastTwentyWhoTookADownload(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a&downloads=30", "0123456789").LinkURL
	first := s.peer("203.0.113.1:1")
	first.take(link)
	first.take(link) // in the same minute it is not written again
	var all sync.WaitGroup
	for i := range 19 {
		all.Go(func() { s.peer(fmt.Sprintf("203.0.113.%d:1", 10+i)).take(link) })
	}
	all.Wait()
	for i := range 19 {
		s.peer(fmt.Sprintf("203.0.113.%d:1", 10+i)).resume(206, link)
	}
	first.resume(206, link)
	claim := s.peer("203.0.113.99:1").take(link)
	s.peer("203.0.113.99:1").resume(206, link)
	first.resume(302, link)
	_, token, _ := strings.Cut(link, "k=")
	item := func() string { return s.Items()["link#"+keys.HashToken(token)+" link"] }
	for _, secret := range []string{"203.0.113", "curl", claim[len(link):]} {
		if item := item(); strings.Count(item, `"who"`) != 20 || strings.Contains(item, secret) {
			t.Errorf("the item is %s", item)
		}
	}
	s.Clock.Advance(24 * time.Hour)
	first.take(link)
	expect.Equal(t, "those who are remembered of a day", strings.Count(item(), `"who"`), 1)
}

// TestRealDownloadersTakeOneDownload cuts their files in the middle, as a lost connection does.
func TestRealDownloadersTakeOneDownload(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("the emulator's gateway is a proxy on this machine")
	text := strings.Repeat("0123456789abcdef", 5<<16)
	for name, commands := range map[string][][]string{
		"aria2c": {{"--no-conf", "-q", "-x16", "-s16", "-k1M", "-o", "got"}},
		"curl":   {{"-sSfL", "-o", "got"}, {"-sSfL", "-C", "-", "-o", "got"}},
		"wget":   {{"-q", "-O", "got"}, {"-q", "-c", "-O", "got"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skip(name + " is not installed")
			}
			dir, link := t.TempDir(), s.Upload("file=a&downloads=1", text).LinkURL
			got := filepath.Join(dir, "got")
			for i, args := range commands {
				if i > 0 {
					expect.NoErr(t, os.Truncate(got, int64(len(text)/3)))
				}
				cmd := exec.CommandContext(t.Context(), path, append(args, link)...)
				cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			if content, err := os.ReadFile(got); err != nil || string(content) != text {
				t.Errorf("%d bytes arrived, %v", len(content), err)
			}
		})
	}
}
