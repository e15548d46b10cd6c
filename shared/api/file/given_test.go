package file_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
)

// givingAtMost bounds what a link gives out in an hour.
func givingAtMost(bytes int64) apitest.Option {
	return func(s *service.Settings, _ *local.ServiceOptions) { s.LinkBytes = bytes }
}

// toTheHour moves the clock to a minute after an hour begins, while the bearer lasts.
func (s sharer) toTheHour() {
	now := s.Clock.Now()
	left := now.Truncate(time.Hour).Add(time.Hour + time.Minute).Sub(now)
	if left > time.Hour {
		left -= time.Hour
	}
	s.Clock.Advance(left)
}

// wantWait checks that a link is refused until about the next hour.
func wantWait(t *testing.T, status int, h http.Header) {
	t.Helper()
	wait, err := strconv.Atoi(h.Get("Retry-After"))
	if status != 429 || err != nil || wait <= 0 || wait > 3600 || !strings.Contains(h.Get("Ferry-Error"), "minutes") {
		t.Errorf("status %d, headers %v", status, h)
	}
}

func TestALinkThatGaveEnoughRestsUntilTheNextHour(t *testing.T) {
	t.Parallel()
	s := begin(t, givingAtMost(2_000_000))
	link, other := s.share("a", strings.Repeat("x", 100_000)), s.share("b", "another file")
	for hour := range 2 {
		s.toTheHour()
		for i := range 10 { // whole downloads, and parts that are no downloads
			s.Get(link)
			s.Send("GET "+link, "", "Range", "bytes=0-99998").Want(206)
			s.wantDownloads("until now", link, hour*11+i+1)
		}
		s.Get(link) // the parts lacked a byte each
		s.wantDownloads("in the hour", link, hour*11+11)
		refused, part := s.Send("GET "+link, ""), s.Send("GET "+link, "", "Range", "bytes=0-0")
		wantWait(t, refused.Code, refused.Header)
		wantWait(t, part.Code, part.Header)
		s.Get(other)
		s.Send("GET "+link+"&about", "").Want(200)
		s.Send("HEAD "+link, "").Want(200)
	}
}

// TestAFileCanBeDownloadedTenTimesAnHourHoweverLarge: a hurried downloader, who asks again before
// the table shows what the link has given, gets no more.
func TestAFileCanBeDownloadedTenTimesAnHourHoweverLarge(t *testing.T) {
	t.Parallel()
	s := begin(t, givingAtMost(1))
	s.toTheHour()
	link := s.share("a", strings.Repeat("x", 50_000))
	for range 20 { // gives nothing
		s.Send("GET "+link, "", "Range", "bytes=50000-").Want(416)
	}
	var given atomic.Int64
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if s.Send("GET "+link, "", "Range", "bytes=0-").Code == 206 {
				given.Add(1)
			}
		})
	}
	all.Wait()
	expect.Equal(t, "downloads", given.Load(), 10)
}

func TestAnswersUnderWayCountUntilTheyAreCutOff(t *testing.T) {
	t.Parallel()
	for what, most := range map[string]int{"": 10, "bytes=12582912-": 20} { // halves, if the file is the same
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := begin(t, givingAtMost(1))
			s.toTheHour()
			link := s.share("a", strings.Repeat("x", 24<<20)) // more than a connection takes unread
			etag := s.Send("HEAD "+link, "").Header.Get("ETag")
			get := func() *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), "GET", link, nil)
				expect.NoErr(t, err)
				if what != "" {
					r.Header = http.Header{"Range": {what}, "If-Range": {etag}}
				}
				resp, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
				expect.NoErr(t, err)
				t.Cleanup(func() { resp.Body.Close() })
				return resp
			}
			var begun []*http.Response
			for range most {
				begun = append(begun, get())
			}
			refused := get()
			wantWait(t, refused.StatusCode, refused.Header)
			for _, resp := range begun {
				resp.Body.Close()
			}
			if !expect.Eventually(func() bool { return get().StatusCode < 300 }) {
				t.Error("what was not sent is not given back")
			}
		})
	}
}

// wantGiven checks that a redirect for a range gives n bytes more.
func (s sharer) wantGiven(get func(link, source, asked string) *httptest.ResponseRecorder, link, asked string, n int) {
	s.Helper()
	want := s.stored(link).Given + n
	if w := get(link, "192.0.2.1:1", asked); w.Code != 302 {
		s.Fatalf("%s: status %d", asked, w.Code)
	}
	if !expect.Eventually(func() bool { return s.stored(link).Given == want }) {
		s.Fatalf("%s: the link gave %d bytes, want %d", asked, s.stored(link).Given, want)
	}
}

func TestEachRedirectGivesTheWholeFile(t *testing.T) {
	t.Parallel()
	s := begin(t, givingAtMost(1))
	get := s.redirecting()
	s.toTheHour()
	link := s.share("a", "0123456789")
	for range 10 { // from one source, which counts as one download
		s.wantGiven(get, link, "", 10)
	}
	w := get(link, "192.0.2.1:1", "")
	wantWait(t, w.Code, w.Header())
	s.wantDownloads("redirects to one source", link, 1)
	if w := get(s.share("b", "x2"), "192.0.2.1:1", ""); w.Header().Get("X-Amz-Checksum-Crc64nvme") == "" {
		t.Errorf("the headers are %v", w.Header())
	}
}

// TestSixteenRangesGiveTheFileOnce: a redirect's address gives the whole file, but one
// downloader with many connections asks for each range by itself.
func TestSixteenRangesGiveTheFileOnce(t *testing.T) {
	t.Parallel()
	s := begin(t, givingAtMost(1))
	get := s.redirecting()
	s.toTheHour()
	link, small := s.share("a", strings.Repeat("x", 160)), s.share("b", "0123456789")
	for i := range 16 {
		s.wantGiven(get, link, fmt.Sprintf("bytes=%d-%d", i*10, i*10+9), 10)
	}
	for asked, n := range map[string]int{
		"bytes=0-0": 10, "bytes=-1": 10, "bytes=159-": 10, "bytes=120-999": 40, "bytes=-40": 40, "bytes=-999": 160, "": 160, "bytes=0-": 160,
		"bytes=0-9,20-29": 160, "bytes=9-0": 160, "bytes=160-": 160, "bytes=x": 160, "lines=0-0": 160,
	} {
		s.wantGiven(get, link, asked, n)
	}
	for asked, n := range map[string]int{"bytes=0-0": 1, "bytes=-5-3": 10, "bytes=-9223372036854775000-0": 10} {
		s.wantGiven(get, small, asked, n)
	}
}

// TestTheBoundOfALinkCostsNoCall counts calls to the table.
func TestTheBoundOfALinkCostsNoCall(t *testing.T) {
	t.Parallel()
	calls := map[int64]map[string]int{}
	for _, bound := range []int64{0, 1 << 40} {
		s := begin(t, givingAtMost(bound))
		s.CountAtOnce()
		link := s.share("a", "0123456789")
		s.Calls.Reset()
		s.Get(link)
		s.Send("GET "+link, "", "Range", "bytes=0-5")
		s.Send("GET "+link, "", "Range", "bytes=5-")
		calls[bound] = s.Calls.Reset()
	}
	expect.Equal(t, "calls with the bound", calls[1<<40], calls[0])
}

func TestAClaimTakesNoDownloadOfALinkThatHasGivenItsMost(t *testing.T) {
	t.Parallel()
	s := begin(t, givingAtMost(1))
	s.toTheHour()
	link := s.Upload("file=a&downloads=20", "0123456789").LinkURL
	for range 10 { // which every link gives in an hour
		s.Get(s.claim(link))
	}
	s.Send("GET "+s.claim(link), "").Want(429)
	expect.Equal(t, "what is left", *s.links("1")[0].Left, 10)
}
