package file_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

// claim asks for a guarded link and returns the address that it redirects to.
func (s sharer) claim(link string, headers ...string) string {
	s.Helper()
	a := s.Send("GET "+link, "", headers...).Want(302)
	to := a.Header.Get("Location")
	if !strings.HasPrefix(to, link+"&claim=") {
		s.Fatalf("it redirects to %q", to)
	}
	return to
}

// claimOf asks for an entry of a guarded link, or for all of them.
func (s sharer) claimOf(link, wish string) string {
	s.Helper()
	to := s.Send("GET "+link+wish, "").Want(302).Header.Get("Location")
	if !strings.HasPrefix(to, link+"&claim=") || !strings.HasSuffix(to, wish) {
		s.Fatalf("%s redirects to %q", wish, to)
	}
	return to
}

// wantText checks that an answer has these texts.
func wantText(t testing.TB, a apitest.Answer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.Text, text) {
			t.Errorf("%s lacks %s", a.Text, text)
		}
	}
}

// links returns the links of a file as its record lists them.
func (s sharer) links(id string) []wire.Link {
	s.Helper()
	return apitest.Read[struct{ Links []wire.Link }](s.Ask("GET /files/"+id, "").Want(200)).Links
}

// moreLinks makes more links of the file with id 1, and returns them.
func (s sharer) moreLinks(body string) []wire.Link {
	s.Helper()
	return apitest.Read[struct{ Links []wire.Link }](s.Ask("POST /files/1/links", body).Want(201)).Links
}

func TestALimitedLinkGivesAsManyDownloadsAsItAllows(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a.txt&downloads=2", "0123456789").LinkURL
	for range 5 {
		s.claim(link) // this takes nothing
	}
	first, second, third := s.claim(link), s.claim(link), s.claim(link)
	for range 3 {
		expect.Equal(t, "the bytes", s.Get(first), "0123456789")
		s.Send("GET "+first, "", "Range", "bytes=5-").Want(206)
	}
	s.Send("HEAD "+second, "").Want(200)
	s.Send("GET "+second, "", "Accept", "application/json").Want(200)
	expect.Equal(t, "what is left", *s.links("1")[0].Left, 1)
	expect.Equal(t, "the bytes", s.Get(second), "0123456789")
	s.Send("GET "+third, "").
		Want(401).
		WantHeaders("Ferry-Error", "this link is used up: it has reached its limit of downloads")
	s.Send("GET "+link, "").Want(401)
	expect.Equal(t, "the bytes again", s.Get(first), "0123456789")
	expect.Equal(t, "the state", s.links("1")[0].State, "used up")
	s.Ask("PATCH /files/1/links/own", `{"downloads": 3}`).Want(200)
	expect.Equal(t, "the bytes", s.Get(third), "0123456789")
}

func TestAClaimOfAWrongClockEnds(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("it needs the clock")
	link := s.Upload("file=a.txt&downloads=5", "0123456789").LinkURL
	claim := s.claim(link)
	s.Clock.Advance(-36 * time.Hour)
	expect.Equal(t, "the bytes", s.Get(claim), "0123456789")
	s.Clock.Advance(36 * time.Hour)
	for range 2 {
		s.Send("GET "+claim, "").Want(401, "open the link again")
	}
	expect.Equal(t, "the bytes", s.Get(s.claim(link)), "0123456789")
}

func TestAClaimEnds(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a.txt&downloads=5", "0123456789").LinkURL
	other := s.Upload("file=b.txt&downloads=5", "0123456789").LinkURL
	taken, late := s.claim(link), s.claim(link)
	s.Get(taken)
	s.Clock.Advance(61 * time.Minute)
	s.Send("GET "+late, "").Want(401)
	expect.Equal(t, "a download that is resumed", s.Get(taken), "0123456789")
	s.Clock.Advance(24 * time.Hour)
	s.Send("GET "+taken, "").Want(401)
	_, nonce, _ := strings.Cut(s.claim(link), "&claim=")
	for what, claim := range map[string]string{
		"another link's": nonce,
		"a made-up one":  "AAAA",
		"a changed one":  "B" + nonce[1:],
	} {
		expect.Equal(t, "the status with "+what+" claim", s.Send("GET "+other+"&claim="+claim, "").Code, 401)
	}
}

func TestManyAtOnceGetNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a.txt&downloads=3", "0123456789").LinkURL
	askers := 200
	if s.InStack() {
		askers = 20 // the emulator answers more with a 503; infra/stack has more for its table
	}
	var all sync.WaitGroup
	codes := make([]int, askers)
	for i := range askers {
		all.Go(func() {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", link, nil)
			req.Header.Set("User-Agent", "curl/8")
			if i%2 == 0 {
				req.Header.Set("Range", "bytes=0-") // the others want all without saying so
			}
			resp, err := http.DefaultClient.Do(req) // it follows the redirect
			if err == nil {
				codes[i] = resp.StatusCode
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	got := map[int]int{}
	for _, code := range codes {
		got[code]++
	}
	if got[200]+got[206] != 3 || got[401] != askers-3 {
		t.Errorf("the answers are %v", got)
	}
}

func TestGuessesOfALinksPasswordAreThrottled(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("in the emulator the guesses take longer than the wait; infra/stack sees that functions throttle")
	link := s.share("a.txt", "0123456789", "Ferry-Link-Password", right)
	for i := range 6 {
		s.Send("GET "+link, "", "Ferry-Link-Password", fmt.Sprint("guess ", i))
	}
	s.Send("GET "+link, "", "Ferry-Link-Password", right).Want(429)
	other := s.share("b.txt", "1", "Ferry-Link-Password", right)
	s.Send("GET "+other, "", "Ferry-Link-Password", right).Want(302)
}

func TestLimitsThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("a.txt", "1")
	const table = `
		POST /upload?file=a&downloads=0 | 1
		POST /upload?file=a&downloads=x | 1
		POST /upload?file=a&download=3 | 1
		POST /upload?file=a&expire=1h | 1
		POST /upload?file=a&expires=never | 1
		POST /upload?file=a&expires=999d | 1
		POST /upload?file=a&expires=9999-12-31T23:59:59-10:00 | 1
		POST /files/1/links | {"download": 3}
		POST /files/1/links | {"expires": "9999-12-31T23:59:59-10:00"}
		POST /files/1/links | null
		POST /files/1/links | {"m": [], "i": "hello"}
		POST /files/1/links | {"i": "hello"}
		POST /files/1/links | {"m": [""]}
		POST /files/1/links | {"m": ""}
		POST /files/1/links | {"c": ["+393331234567", ""]}
		POST /files/1/links | {"password": " secret"}
		POST /files/1/links | {"password": "a\nb"}
		POST /files/1/links?downloads=3 | {}
		PATCH /files/1/links/own | {"downloads": -1}
		PATCH /files/1/links/own | {"password": "  "}
		PATCH /files/1/links/own | null
		PATCH /files/1 | {"name": ""}
		POST /uploads | {"name": "a", "expired": "1h"}
		POST /tokens | {"name": "x", "scope": "all", "expires": "9999-12-31T23:59:59-10:00"}
		GET /download/list?serch=x
		GET /download/list/backup?limits=2`
	for _, cells := range rowsOf(table) {
		expect.Equal(t, strings.Join(cells, " "), s.Ask(cells[0], strings.Join(cells[1:], "")).Code, 400)
	}
	s.Ask("PATCH /files/1/links/x", `{}`).Want(404)
	s.Ask("DELETE /files/2/links/own", "").Want(404)
	s.Ask("POST /upload?file=a&x=1&other=2", "1").Want(200)
	s.Ask("GET /download/list?x=1&other=2", "").Want(200)
}

func TestARobotGetsWhatItAsksForOfALinkWithoutLimits(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "0123456789")
	robot := []string{"User-Agent", "Slackbot 1.0"}
	for _, query := range []string{"&download=1", "&about"} {
		s.Send("GET "+link+query, "", robot...).Want(200)
	}
	s.Send("GET "+link, "", append(robot, "Accept", "application/json")...).Want(200)
	s.Send("GET "+link[:len(link)-1], "", robot...).Want(401)
}

func TestAProtectedLinkNeedsItsPassword(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "0123456789", "Ferry-Link-Password", right)
	s.Send("GET "+link, "", "Accept", "application/json").
		Want(401).
		WantHeaders("WWW-Authenticate", `Basic realm="link", charset="UTF-8"`)
	s.Send("GET "+link, "", "Accept", "application/json", "Ferry-Link-Password", right).Want(200)
	for _, query := range []string{"", "&download=1"} { // the page asks for the password
		s.Send("GET "+link+query, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate").
			Want(303).
			WantHeaders("WWW-Authenticate", "")
	}
	claimed := s.claim(link, "Authorization", apitest.Basic("", right)) // as in curl -u
	expect.Equal(t, "the bytes", s.Get(claimed), "0123456789")
	s.Ask("PATCH /files/1/links/own", `{"password": "another"}`).Want(200)
	s.Send("GET "+claimed, "").Want(401)
	s.Ask("PATCH /files/1/links/own", `{"password": ""}`).Want(200)
	expect.Equal(t, "the bytes", s.Get(link), "0123456789")
}

// TestADeadLinkSaysWhy: the tests of pages have the other reasons.
func TestADeadLinkSaysWhy(t *testing.T) {
	t.Parallel()
	s := begin(t)
	why := func(want, link string) { t.Helper(); s.Send("GET "+link, "").Want(401, want) }
	deleted, ended, renewed := s.share("a", "1"), s.share("b", "2"), s.share("c", "3")
	s.Ask("DELETE /files/1", "").Want(200)
	s.Ask("DELETE /files/2/links/own", "").Want(200)
	now := s.Ask("POST /files/3/links/own/renew", "").Want(200)
	why("was deleted", deleted)
	why("was ended", renewed)
	why("no such link", deleted[:len(deleted)-3]+"abc")
	expect.Equal(t, "the new link's bytes", s.Get(now.LinkURL), "3")
	s.Ask("DELETE /files/2", "").Want(200)
	s.Ask("POST /files/2/restore", "").Want(200)
	why("was ended", ended)
}

func TestAFileGetsMoreLinks(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("a.txt", "0123456789")
	one := s.moreLinks(`{"downloads": 1, "expires": "1d"}`)[0]
	two := s.moreLinks(`{"m": ["ann@example.com", "carla@example.com"], "i": "hello"}`)
	if len(two) != 2 || two[0].LinkURL != "" || two[1].To != "carla@example.com" {
		t.Fatalf("the links are %+v", two)
	}
	expect.Equal(t, "the bytes", s.Get(s.claim(one.LinkURL)), "0123456789")
	wantText(t, s.Ask("PATCH /files/1", `{"name": "b.txt", "expires": "2d"}`).Want(200), `"name":"b.txt"`)
	all := s.links("1")
	expect.Equal(t, "the links", len(all), 4)
	expect.Equal(t, "the state", all[1].State, "used up")
}

func TestAboutAndPreviewCountNoDownload(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "0123456789")
	wantText(t, s.Send("GET "+link+"&about", "").Want(200), `"sender":"ann"`, `"name":"a.txt"`, `"protected":false`)
	expect.Equal(t, "the preview", s.Get(link+"&preview"), "0123456789")
	guarded := s.Upload("file=b.txt&downloads=1", "1", "Ferry-Link-Password", right).LinkURL
	for _, claim := range []string{"", "&claim"} {
		a := s.Send("GET "+guarded+"&about"+claim, "").Want(200)
		wantText(t, a, `"left":1`, `"protected":true`)
		if strings.Contains(a.Text, "b.txt") {
			t.Errorf("it tells %s", a.Text)
		}
	}
	s.Send("GET "+guarded+"&preview", "").Want(403)
	s.Get(link)
	s.wantDownloads("about and a preview", link, 1)
}
