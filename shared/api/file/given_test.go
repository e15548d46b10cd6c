package file_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

// givingAtMost bounds what a link gives out in an hour.
func givingAtMost(bytes int64) apitest.Option {
	return func(s *api.Settings, _ *local.ServiceOptions) { s.LinkBytes = bytes }
}

// toTheHour moves the clock to a minute after an hour begins, while the bearer lasts.
func (s sharer) toTheHour() {
	now := s.Clock.Now()
	left := now.Truncate(time.Hour).Add(time.Hour + time.Minute).Sub(now)
	if left >= time.Hour {
		left -= time.Hour
	}
	s.Clock.Advance(left)
}

// wantWait checks that a link is refused until about the next hour.
func wantWait(t *testing.T, what string, status int, h http.Header) {
	t.Helper()
	wait, err := strconv.Atoi(h.Get("Retry-After"))
	if status != 429 || err != nil || wait <= 0 || wait > 3600 || !strings.Contains(h.Get("Ferry-Error"), "minutes") {
		t.Errorf("%s: status %d, headers %v", what, status, h)
	}
}

func TestALinkThatGaveEnoughRestsUntilTheNextHour(t *testing.T) {
	t.Parallel()
	s := newSharer(t, givingAtMost(2_000_000))
	link, other := s.put("a", strings.Repeat("x", 100_000)), s.put("b", "another file")
	get := func(link string, headers ...string) *http.Response { return s.Request("GET", link, nil, headers...) }
	for hour := range 2 {
		s.toTheHour()
		for i := range 10 { // whole downloads, and parts that are no downloads
			a, b := get(link), get(link, "Range", "bytes=0-99998")
			if a.StatusCode != 200 || b.StatusCode != 206 {
				t.Fatalf("download %d has status %d, a part %d", i, a.StatusCode, b.StatusCode)
			}
			s.wantDownloads("until now", link, hour*11+i+1)
		}
		get(link) // the parts lacked a byte each
		s.wantDownloads("in the hour", link, hour*11+11)
		refused := get(link)
		wantWait(t, "a link", refused.StatusCode, refused.Header)
		refused = get(link, "Range", "bytes=0-0")
		wantWait(t, "a part", refused.StatusCode, refused.Header)
		for what, resp := range map[string]*http.Response{
			"another link": get(other), "the page": get(link, "Accept", "text/html"), "its head": s.Request("HEAD", link, nil),
		} {
			if resp.StatusCode != 200 {
				t.Errorf("%s has status %d", what, resp.StatusCode)
			}
		}
	}
}

func TestAFileCanBeDownloadedTenTimesAnHourHoweverLarge(t *testing.T) {
	t.Parallel()
	s := newSharer(t, givingAtMost(1))
	s.toTheHour()
	link := s.put("a", "0123456789")
	for i := range 10 {
		if resp := s.Request("GET", link, nil); resp.StatusCode != 200 {
			t.Fatalf("download %d has status %d", i, resp.StatusCode)
		}
		s.wantDownloads("until now", link, i+1)
	}
	resp := s.Request("GET", link, nil)
	wantWait(t, "the next one", resp.StatusCode, resp.Header)
}

// TestAHurriedDownloaderGetsNoMoreThanTheBound asks again before the table shows what the
// link has given.
func TestAHurriedDownloaderGetsNoMoreThanTheBound(t *testing.T) {
	t.Parallel()
	for what, atOnce := range map[string]int{"on one connection": 1, "on many at once": 40} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSharer(t, givingAtMost(1))
			s.toTheHour()
			link := s.put("a", strings.Repeat("x", 50_000))
			for range 20 { // gives nothing
				s.Request("GET", link, nil, "Range", "bytes=50000-")
			}
			var given atomic.Int64
			var all errgroup.Group
			all.SetLimit(atOnce)
			for range 40 {
				all.Go(func() error {
					given.Add(s.Request("GET", link, nil, "Range", "bytes=0-").ContentLength / 50_000)
					return nil
				})
			}
			if err := all.Wait(); err != nil || given.Load() != 10 {
				t.Errorf("the file was given %d times, want 10", given.Load())
			}
		})
	}
}

func TestAnswersUnderWayCountUntilTheyAreCutOff(t *testing.T) {
	t.Parallel()
	s := newSharer(t, givingAtMost(1))
	s.toTheHour()
	link := s.put("a", strings.Repeat("x", 24<<20)) // more than a connection takes unread
	get := func() *http.Response {
		resp, err := (&http.Client{Transport: &http.Transport{}}).Get(s.Base + link)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	var begun []*http.Response
	for range 10 {
		begun = append(begun, get())
	}
	refused := get()
	wantWait(t, "beside ten", refused.StatusCode, refused.Header)
	for _, resp := range begun {
		resp.Body.Close()
	}
	if !waitFor(func() bool { return get().StatusCode == 200 }) {
		t.Error("what was not sent is not given back")
	}
}

func TestEachRedirectGivesTheWholeFile(t *testing.T) {
	t.Parallel()
	s := newSharer(t, givingAtMost(1))
	get := s.redirecting()
	s.toTheHour()
	link := s.put("a", "0123456789")
	for i := range 11 { // from one source, which counts as one download
		w := get(link, "192.0.2.1:1", "")
		switch {
		case i < 10 && w.Code != 302:
			t.Errorf("redirect %d has status %d", i, w.Code)
		case i == 10:
			wantWait(t, "the next one", w.Code, w.Header())
		}
		waitFor(func() bool { return s.storedUse(link).Given >= min(10, i+1)*10 })
	}
	s.wantDownloads("redirects to one source", link, 1)
}

// TestSixteenRangesGiveTheFileOnce: a redirect's address gives the whole file, but one
// downloader with many connections asks for each range by itself.
func TestSixteenRangesGiveTheFileOnce(t *testing.T) {
	t.Parallel()
	s := newSharer(t, givingAtMost(1))
	get := s.redirecting()
	s.toTheHour()
	link, small := s.put("a", strings.Repeat("x", 160)), s.put("b", "0123456789")
	sum := map[string]int{}
	gives := func(link, asked string, n int) {
		t.Helper()
		w := get(link, "192.0.2.1:1", asked)
		sum[link] += n
		waitFor(func() bool { return s.storedUse(link).Given == sum[link] })
		if now := s.storedUse(link).Given; w.Code != 302 || now != sum[link] {
			t.Fatalf("%s: status %d, the link gave %d bytes, want %d", asked, w.Code, now, sum[link])
		}
	}
	for i := range 16 {
		gives(link, fmt.Sprintf("bytes=%d-%d", i*10, i*10+9), 10)
	}
	for asked, n := range map[string]int{
		"bytes=0-0": 10, "bytes=-1": 10, "bytes=159-": 10, "bytes=120-999": 40, "bytes=-40": 40, "bytes=-999": 160, "": 160, "bytes=0-": 160,
		"bytes=0-9,20-29": 160, "bytes=9-0": 160, "bytes=160-": 160, "bytes=x": 160, "lines=0-0": 160,
	} {
		gives(link, asked, n)
	}
	for asked, n := range map[string]int{"bytes=0-0": 1, "bytes=-5-3": 10, "bytes=-9223372036854775000-0": 10} {
		gives(small, asked, n)
	}
}

// TestTheBoundOfALinkCostsNoCall counts calls to the table.
func TestTheBoundOfALinkCostsNoCall(t *testing.T) {
	t.Parallel()
	calls := map[int64]map[string]int{}
	for _, bound := range []int64{0, 1 << 40} {
		s := newSharer(t, givingAtMost(bound))
		link := s.put("a", "0123456789")
		s.Calls.Reset()
		s.Request("GET", link, nil)
		s.Request("GET", link, nil, "Range", "bytes=0-5")
		s.Request("GET", link, nil, "Range", "bytes=5-")
		calls[bound] = s.Calls.Reset()
	}
	if with, without := calls[1<<40], calls[0]; !maps.Equal(with, without) || len(with) == 0 {
		t.Errorf("with the bound the calls are %v, without it %v", with, without)
	}
}
