package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"ferry/shared/web/browsertest"
)

// pages measures the pages in a browser: first visits over a slow line.
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
		{"a file", "main a.primary", false, func(s *subject) string { s.files(1, 1, ""); return s.link() }},
		{"a bundle", "main a.primary", false, (*subject).bundle},
		{"files", "main .head a.button", true, func(s *subject) string { s.files(5, 10, ""); return path("files")(s) }},
		{"account", "main form[action=logout] button", true, path("account")},
		{"requests", "main a.primary", true, func(s *subject) string { s.guestPage(); return path("requests")(s) }},
		{"login", "main button.primary", false, path("login")},
		{"a guest", "#start .primary", false, (*subject).guestPage},
	}
	if b.rounds < 5 {
		some = some[:2]
	}
	for _, p := range some {
		all = append(all, measurement{"pages", "page of " + p.name + " on slow 3G: working button", "s", "", 0, 0,
			func(s *subject) {
				server := &subject{name: s.name, tool: s.tool} // its memory says nothing about the pages
				b.serve(server, "on")
				server.login()
				at := p.at(server)
				s.op = func() float64 { return b.visit(s, server, at, p.button, p.user) }
			}})
	}
	return all
}

// tab opens a window that has visited nothing, with a login if user is set.
func (b *bench) tab(s *subject, user bool) *browsertest.Tab {
	host := browsertest.Host{
		Dir:    b.dir,
		Report: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
		Fail:   func(format string, args ...any) { check(fmt.Errorf(format, args...)) },
	}
	tab := browsertest.OpenFor(host, s.root(), browsertest.Phone())
	if user {
		var login struct{ Token string }
		s.ask("POST", "/tokens", `{"name":"bench","scope":"login"}`, &login)
		tab.SetCookie("ferry", login.Token)
	}
	return tab
}

// root is the address that pages are below.
func (s *subject) root() string { return strings.TrimSuffix(s.url, "v1") }

// bundle uploads a bundle of 50 files, and returns its link.
func (s *subject) bundle() string {
	body, kind := form(50, "file %02d.bin", []byte("0123456789abcdef"))
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
	s.note = fmt.Sprintf("first paint %.1f s, %.1f kB in %d answers", found.Paint/1e3, float64(received.Load())/1e3,
		answers.Load())
	return max(found.Paint, found.Ready) / 1e3
}
