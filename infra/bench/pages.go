package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"ferry/shared/web/browsertest"
)

// pages measures the pages in a browser: first visits over a slow line, the memory of a tab that
// sends files, and how fast it sends them.
func (b *bench) pages() (all []measurement) {
	check(os.Setenv("FERRY_BROWSER", "whole")) // the browser that people have
	if browsertest.Executable() == "" {
		fmt.Fprintln(os.Stderr, "no chromium is installed: the pages are not measured")
		return nil
	}
	path := func(name string) func(*subject) string {
		return func(s *subject) string { return s.root() + name }
	}
	some := []struct {
		name, button string // what must work once a page's scripts have loaded
		user         bool   // a user who is logged in
		at           func(*subject) string
	}{
		{"send", "#start .primary", true, path("send")},
		{"a file", "main a.primary", false, func(s *subject) string {
			s.files(1, 1, "")
			return s.link()
		}},
		{"a bundle", "main a.primary", false, func(s *subject) string {
			return s.bundle(50, "file %02d.bin")
		}},
		{"files", "main .head a.button", true, func(s *subject) string {
			s.files(5, 10, "")
			return path("files")(s)
		}},
		{"account", "main form[action=logout] button", true, path("account")},
		{"requests", "main a.primary", true, func(s *subject) string {
			s.guestPage()
			return path("requests")(s)
		}},
		{"login", "main button.primary", false, path("login")},
		{"a guest", "#start .primary", false, (*subject).guestPage},
	}
	if b.rounds < 5 {
		some = some[:2]
	}
	for _, p := range some {
		all = append(all, measurement{
			"pages",
			"page of " + p.name + " on slow 3G: working button",
			"s",
			"",
			0,
			0,
			func(s *subject) {
				server := b.servePages(s)
				at := p.at(server)
				s.op = func() float64 { return b.visit(s, server, at, p.button, p.user) }
			},
		})
	}
	size := min(2_000_000_000, 2*b.large)
	what := fmt.Sprintf("tab that sends %d MB as ", size/1e6)
	rate := fmt.Sprintf("sending %d MiB by a page over 1 Gbit/s, against ferry up", b.large>>20)
	return append(all,
		measurement{
			"pages", what + "one file: its memory at most", "MiB", "", 0, 0, b.sendingTab(
				size,
				1,
			),
		},
		measurement{
			"pages",
			what + "a bundle of 20: its memory at most",
			"MiB",
			"",
			0,
			0,
			b.sendingTab(size, 20),
		},
		measurement{"pages", rate, "MB/s", ">= 0.70", (b.rounds + 1) / 2, 0, b.overALine},
	)
}

// tab opens a window that has visited nothing, with a login if user is set.
func (b *bench) tab(s *subject, user bool) *browsertest.Tab {
	host := browsertest.Host{
		Dir: b.dir,
		Report: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		},
		Fail: func(format string, args ...any) { check(fmt.Errorf(format, args...)) },
	}
	tab := browsertest.OpenFor(host, s.root(), browsertest.Phone())
	if user {
		var login struct{ Token string }
		s.ask("POST", "/tokens", `{"name":"bench","scope":"login"}`, &login)
		tab.SetCookie("ferry", login.Token)
	}
	return tab
}

// servePages starts a server with a user. It is not a subject of the measurement, because its
// memory says nothing about the pages.
func (b *bench) servePages(s *subject) *subject {
	server := &subject{name: s.name, tool: s.tool}
	b.serve(server, "on")
	server.login()
	return server
}

// root is the address that pages are below.
func (s *subject) root() string { return strings.TrimSuffix(s.url, "v1") }

// bundle uploads a bundle of files, and returns its link.
func (s *subject) bundle(files int, name string) string {
	body, kind := form(files, name, []byte("0123456789abcdef"))
	s.load(1, 1, "POST", s.url+"/upload?bundle=all.zip", body, kind)
	return s.link()
}

// guestPage makes a request, and returns its link.
func (s *subject) guestPage() string {
	var made struct{ LinkURL string }
	s.ask("POST", "/requests", `{"title":"Photos of the trip","message":"All of them"}`, &made)
	return made.LinkURL
}

// visit opens a page with an empty cache, on slow 3G. It returns after how many seconds its button
// works, and notes when the page is first painted, and how much was transferred.
func (b *bench) visit(s, server *subject, at, button string, user bool) float64 {
	tab := b.tab(server, user)
	defer tab.Close()
	tab.Slow()
	var received, answers, last atomic.Int64
	finished := chromedp.Events(tab.Context, network.LoadingFinished)
	go func() {
		for e, err := range finished {
			if err != nil {
				return
			}
			received.Add(int64(e.EncodedDataLength))
			answers.Add(1)
			last.Store(time.Now().UnixNano())
		}
	}()
	last.Store(time.Now().UnixNano())
	must(chromedp.Call(tab.Context, page.Navigate, page.NavigateParams{URL: at}))
	for time.Since(time.Unix(0, last.Load())) < 5*time.Second { // a script may load another one
		time.Sleep(100 * time.Millisecond)
	}
	var found struct {
		Paint, Ready float64
		Works        bool
	}
	check(json.Unmarshal([]byte(tab.Text(`(() => {
		const button = document.querySelector(`+browsertest.Quoted(button)+`);
		return JSON.stringify({
			paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
			ready: performance.getEntriesByType("navigation")[0].domContentLoadedEventStart, // modules run before
			works: button.checkVisibility() && !button.disabled,
		});
	})()`)), &found))
	if !found.Works {
		check(fmt.Errorf("%s has no button that works", tab.Address()))
	}
	s.note = fmt.Sprintf(
		"first paint %.1f s, %.1f kB in %d answers",
		found.Paint/1e3,
		float64(received.Load())/1e3,
		answers.Load(),
	)
	return max(found.Paint, found.Ready) / 1e3
}

// send sends files with the page, and returns after how many seconds it shows their link. It keeps
// calling sample with the percentage that has been sent.
func send(tab *browsertest.Tab, sample func(percent float64), paths ...string) float64 {
	tab.Visit("send")
	tab.Pick(paths...)
	start := time.Now()
	tab.Send()
	for !strings.Contains(tab.Address(), "sent=") {
		check(tab.Context.Err())
		progress := chromedp.Evaluate[float64]("document.querySelector('#stage progress')?.value ?? 0")
		percent, err := chromedp.Run(tab.Context, progress)
		if err == nil { // an error means that the next page is loading
			sample(percent)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(start).Seconds()
}

// sendingTab samples the memory of a tab that sends files of a total size: the memory of the
// process that shows the page and of the network process.
func (b *bench) sendingTab(size int64, files int) func(*subject) {
	return func(s *subject) {
		server := b.servePages(s)
		s.op = func() float64 {
			tab := b.tab(server, true)
			defer tab.Close()
			var paths []string
			for i := range files {
				path := filepath.Join(server.dir, fmt.Sprintf("file %02d.bin", i))
				check(os.WriteFile(path, nil, 0o600))
				check(os.Truncate(path, size/int64(files)))
				paths = append(paths, path)
			}
			var at10, at90, most, browser int64
			took := send(tab, func(percent float64) {
				now, rest := memoryOf(tab)
				most, browser = max(most, now), max(browser, rest)
				if percent >= 10 && at10 == 0 {
					at10 = now
				}
				if percent <= 90 {
					at90 = now
				}
			}, paths...)
			s.note = fmt.Sprintf(
				"at 10 %% %d MiB, at 90 %% %d MiB, the browser's own process at most %d MiB, %.0f MB/s",
				at10>>20,
				at90>>20,
				browser>>20,
				float64(size)/1e6/took,
			)
			return float64(most >> 20)
		}
	}
}

// memoryOf returns the memory of a tab, and of the browser's own process. Of the processes that
// show pages it counts the largest: the others are spare.
func memoryOf(tab *browsertest.Tab) (own, browser int64) {
	var largest int64
	found := must(chromedp.CallBrowser(tab.Context, systeminfo.GetProcessInfo, cdp.Empty{}))
	for _, p := range found.ProcessInfo {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.ID))
		switch {
		case p.Type == "renderer":
			largest = max(largest, memory(int(p.ID), "RssAnon:"))
		case bytes.Contains(command, []byte("network.mojom.NetworkService")):
			own = memory(int(p.ID), "RssAnon:")
		case p.Type == "browser":
			browser = memory(int(p.ID), "RssAnon:")
		}
	}
	return own + largest, browser
}

// overALine sends a file with the page, through a line of 1 Gbit/s. The control is ferry up.
func (b *bench) overALine(s *subject) {
	byHand := s.name == control
	if byHand {
		s.name, s.tool = "ferry up", filepath.Join(b.dir, "ferry")
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	public := "http://" + l.Addr().String() + "/v1"
	b.serve(s, "on", "FERRY_PUBLIC_URL="+public)
	go shape(l, must(url.Parse(s.url)).Host, 125_000_000)
	s.url = public
	s.login()
	s.enter(b)
	path := b.source(b.large)
	s.op = func() float64 {
		if byHand {
			return s.up(b, b.large, path, path)
		}
		tab := b.tab(s, true)
		defer tab.Close()
		return megabytes(b.large) / send(tab, func(float64) {}, path)
	}
}
