// Package browsertest drives the pages in a real browser, as people do, for tests and measurements.
// Start reading with Tab; chromium.go starts the browser, look.go takes pictures and checks accessibility.
package browsertest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// patience is how long one step may take: busy machines are slow.
const patience = 10 * time.Minute

// Host is whom a tab works for: a test, or a program that measures.
type Host struct {
	Dir    string                           // for the files that the tab saves
	Report func(format string, args ...any) // reports a fault of a page
	Fail   func(format string, args ...any) // reports that a step failed, and does not return
	Helper func()                           // as that of a test, which says whose line a report names
}

// Tab is a browser window that shares nothing with other windows. Its methods take CSS selectors.
// They call Fail if a step fails, or takes longer than patience.
type Tab struct {
	Host
	View
	Context context.Context
	Root    string // the service's address, with a slash
	end     []func()
	mu      sync.Mutex
	said    []string // errors in the console
	// expected holds words of errors that are not faults, and heard counts those errors.
	expected []string
	heard    map[string]int
}

// Open opens a window on a service for a test. The browser must be installed.
func Open(t testing.TB, root string, v View) *Tab {
	t.Helper()
	b := newTab(Host{t.TempDir(), t.Errorf, t.Fatalf, t.Helper}, root, v)
	t.Cleanup(func() {
		if t.Failed() {
			b.Picture("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
		b.Close()
	})
	b.start()
	return b
}

// OpenFor is Open for a program, which must close the window. The host needs no Helper.
func OpenFor(h Host, root string, v View) *Tab {
	h.Helper = func() {}
	b := newTab(h, root, v)
	b.start()
	return b
}

func newTab(h Host, root string, v View) *Tab {
	return &Tab{
		Host:  h,
		View:  v,
		Root:  strings.TrimSuffix(root, "/") + "/",
		heard: map[string]int{},
	}
}

// start opens the window, unless the network is about to change.
func (b *Tab) start() {
	b.Helper()
	whole, _ := shared()
	ctx, cancel := chromedp.NewContext(whole, chromedp.WithNewBrowserContext())
	// So that a browser that hangs fails one test, by name:
	ctx, stop := context.WithTimeout(ctx, 30*time.Minute)
	b.Context = ctx
	b.end = []func(){stop, cancel}
	unlock, err := lockNetwork(syscall.LOCK_SH)
	b.must("waiting for the network", err)
	b.end = append(b.end, unlock)
	b.must("opening a window", chromedp.Do(ctx))
	b.prepare()
}

// Close closes the window, and reports the errors in the console.
func (b *Tab) Close() {
	b.Helper()
	for _, f := range b.end {
		f()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.Report("the console says: %s", strings.Join(b.said, "\n"))
	}
}

// prepare applies the view's settings, and listens to the console.
func (b *Tab) prepare() {
	b.Helper()
	b.Resize(b.Width, b.Height)
	_, err := chromedp.Call(
		b.Context,
		emulation.SetUserAgentOverride,
		emulation.SetUserAgentOverrideParams{
			UserAgent:      agent,
			AcceptLanguage: b.Lang,
		},
	)
	b.must("setting the language", err)
	if b.Scriptless {
		_, err = chromedp.Call(
			b.Context,
			emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true},
		)
		b.must("turning scripts off", err)
	}
	ctx, messages, dialogs := b.Context, chromedp.Console(b.Context), chromedp.Events(
		b.Context,
		page.JavascriptDialogOpening,
	)
	go func() {
		for _, err := range dialogs { // agree to leave the page
			if err != nil || ctx.Err() != nil {
				return
			}
			_, _ = chromedp.Call(
				ctx,
				page.HandleJavaScriptDialog,
				page.HandleJavaScriptDialogParams{Accept: true},
			)
		}
	}()
	go func() {
		for m, err := range messages {
			if err != nil || ctx.Err() != nil {
				return
			}
			if strings.Contains(string(m.Type), "error") ||
				m.Type == chromedp.ConsoleException {
				b.hear(m.Text)
			}
		}
	}()
}

// Resize changes the size of the window.
func (b *Tab) Resize(width, height int64) {
	b.Helper()
	b.Width, b.Height = width, height
	_, err := chromedp.Call(
		b.Context,
		emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{
			Width:             width,
			Height:            height,
			DeviceScaleFactor: 1,
			Mobile:            width < 600,
		},
	)
	b.must("setting the size", err)
}

// hear records an error in the console. A refused request is not an error: pages show it.
func (b *Tab) hear(text string) {
	if strings.Contains(text, "the server responded with a status of 4") ||
		strings.Contains(text, "ERR_INTERNET_DISCONNECTED") {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, word := range b.expected {
		if strings.Contains(text, word) {
			b.heard[word]++
			return
		}
	}
	b.said = append(b.said, text)
}

// Expect allows errors in the console that contain one of these words.
func (b *Tab) Expect(words ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words...)
}

// Hears returns how many errors contained an expected word.
func (b *Tab) Hears(word string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard[word]
}

func (b *Tab) must(doing string, err error) {
	b.Helper()
	if err != nil {
		b.Fail("%s: %v", doing, err)
	}
}

// Do runs actions.
func (b *Tab) Do(doing string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fail("%s: %v\n%s\n%s", doing, err, b.Address(), b.Words())
	}
}

// Visit opens a page: a path below the service's address, or a whole one.
func (b *Tab) Visit(path string) {
	b.Helper()
	if !strings.Contains(path, "://") {
		path = b.Root + path
	}
	b.Do("opening "+path, chromedp.Navigate(path))
}

// Click clicks the element that a selector names.
func (b *Tab) Click(what string) {
	b.Helper()
	b.Do("clicking "+what, chromedp.Click(css(what)))
}

// Fill types into fields; selectors and texts alternate.
func (b *Tab) Fill(fields ...string) {
	b.Helper()
	for i := 0; i < len(fields); i += 2 {
		b.WaitFor(fields[i])
		b.Is("document.querySelector(" + Quoted(fields[i]) + ").value = '', true")
		b.Do("filling in "+fields[i], chromedp.SendKeys(css(fields[i]), fields[i+1]))
	}
}

// Submit fills in fields of one form, presses its main button, and waits for the next page.
func (b *Tab) Submit(fields ...string) {
	b.Helper()
	b.Fill(fields...)
	b.Press("form:has(" + fields[0] + ") button.primary")
}

// Confirm opens a confirmation, and presses the button in it.
func (b *Tab) Confirm(what string) {
	b.Helper()
	b.Click(what + " summary")
	b.Click(what + " button")
}

// Press clicks a button that leads to another page, and waits for it.
func (b *Tab) Press(what string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(css(what))); err != nil {
		b.Fail("pressing %s: %v\n%s\n%s", what, err, b.Address(), b.Words())
	}
}

// WaitFor waits until the element that a selector names is visible.
func (b *Tab) WaitFor(what string) {
	b.Helper()
	b.Do("waiting for "+what, chromedp.WaitVisible(css(what)))
}

// Until waits until a condition holds.
func (b *Tab) Until(what string, holds func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fail("not within %v: %s\n%s\n%s", patience, what, b.Address(), b.Words())
		}
	}
}

// WaitText waits until the page shows a text.
func (b *Tab) WaitText(text string) {
	b.Helper()
	b.Until("the page says "+text, func() bool { return strings.Contains(b.Words(), text) })
}

// WaitAddress waits until the page's address contains a text, and the page has loaded.
func (b *Tab) WaitAddress(text string) {
	b.Helper()
	b.Until("the address has "+text, func() bool {
		ready, err := chromedp.Run(b.Context, chromedp.Evaluate[string]("document.readyState")) // fails between two pages
		return err == nil && ready == "complete" && strings.Contains(b.Address(), text)
	})
}

// Lacks checks that the page has a heading, but nothing that a selector names.
func (b *Tab) Lacks(what string) {
	b.Helper()
	b.WaitFor("main h1")
	if n := b.Number("document.querySelectorAll(" + Quoted(what) + ").length"); n > 0 {
		b.Report("the page has %s: %s\n%s", what, b.Address(), b.Words())
	}
}

// Choose chooses files in a file input.
func (b *Tab) Choose(what string, files ...string) {
	b.Helper()
	b.Do("choosing files", chromedp.SetUploadFiles(css(what), files, chromedp.NodeReady))
}

// Drop drops files on the sending page.
func (b *Tab) Drop(files ...string) {
	b.Helper()
	b.WaitFor("#start .drop")
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: files, DragOperationsMask: 1}
	drag := input.DispatchDragEventParams{X: 100, Y: 200, Data: data}
	for _, drag.Type = range []input.DispatchDragEventType{"dragEnter", "dragOver", "drop"} {
		_, err := chromedp.Call(b.Context, input.DispatchDragEvent, drag)
		b.must("dropping files", err)
	}
	b.WaitFor("#stage form .action button")
}

// css turns a text into a selector.
func css(s string) chromedp.CSS { return chromedp.CSS(s) }

// Words returns the text that the page shows.
func (b *Tab) Words() string {
	b.Helper()
	return b.Text("document.body ? document.body.innerText : ''")
}

// Address returns the page's address.
func (b *Tab) Address() string {
	at, _ := chromedp.Run(b.Context, chromedp.Location())
	return at
}

// get evaluates an expression, even where the page's own scripts are off.
func get[T any](b *Tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must("evaluating "+expression, err)
	return value
}

// Text, Number and Is evaluate an expression of JavaScript, and wait for it if it is a promise.
func (b *Tab) Text(expression string) string {
	b.Helper()
	return get[string](b, expression)
}
func (b *Tab) Number(expression string) float64 {
	b.Helper()
	return get[float64](b, expression)
}
func (b *Tab) Is(expression string) bool { b.Helper(); return get[bool](b, expression) }

// Reopen closes the window, as a visitor would, and opens another one in the same browser.
func (b *Tab) Reopen() {
	b.Helper()
	old := chromedp.FromContext(b.Context).Target.TargetID
	b.Context, _ = chromedp.NewContext(b.Context) // it ends when the first one ends
	b.must("opening another window", chromedp.Do(b.Context))
	b.prepare()
	_, err := chromedp.CallBrowser(
		b.Context,
		target.CloseTarget,
		target.CloseTargetParams{TargetID: old},
	)
	b.must("closing a window", err)
}

// Downloads lets the window save files, and returns the folder for them.
func (b *Tab) Downloads() string {
	b.Helper()
	folder, err := os.MkdirTemp(b.Dir, "saved-")
	b.must("making a folder", err)
	c := chromedp.FromContext(b.Context)
	_, err = chromedp.CallBrowser(
		b.Context,
		browser.SetDownloadBehavior,
		browser.SetDownloadBehaviorParams{
			Behavior:         "allow",
			BrowserContextID: c.BrowserContextID,
			DownloadPath:     folder,
		},
	)
	b.must("allowing downloads", err)
	return folder
}

// Saved waits for a file in a folder, and returns its content.
func (b *Tab) Saved(folder, name string) []byte {
	b.Helper()
	path := filepath.Join(folder, name)
	b.Until(name+" is saved", func() bool {
		_, err := os.Stat(path)
		more, _ := filepath.Glob(filepath.Join(folder, "*.crdownload"))
		return err == nil && len(more) == 0
	})
	content, err := os.ReadFile(path)
	b.must("reading what was saved", err)
	return content
}

// Saves reports whether the window saves what an address returns, and keeps showing its page.
func (b *Tab) Saves(address string) bool {
	b.Helper()
	result, err := chromedp.Call(b.Context, page.Navigate, page.NavigateParams{URL: address})
	b.must("opening "+address, err)
	return result.IsDownload
}

// Cookies returns the values of the page's cookies, including those that no script can read.
func (b *Tab) Cookies() (all []string) {
	b.Helper()
	result, err := chromedp.Call(b.Context, network.GetCookies, network.GetCookiesParams{})
	b.must("reading the cookies", err)
	for _, c := range result.Cookies {
		all = append(all, c.Value)
	}
	slices.Sort(all)
	return all
}

// Offline cuts the window's network, or restores it.
func (b *Tab) Offline(cut bool) {
	b.Helper()
	b.network(&network.Conditions{DownloadThroughput: -1, UploadThroughput: -1, Offline: cut})
}

// Slow makes the window's network as slow as what Chromium calls slow 3G: 400 kbit/s, and 2 seconds
// before an answer begins.
func (b *Tab) Slow() {
	b.Helper()
	b.network(&network.Conditions{
		Latency:            2000,
		DownloadThroughput: 50_000,
		UploadThroughput:   50_000,
	})
}

func (b *Tab) network(c *network.Conditions) {
	b.Helper()
	_, err := chromedp.Call(b.Context, network.EmulateNetworkConditionsByRule,
		network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{c}})
	b.must("changing the network", err)
	_, err = chromedp.Call(
		b.Context,
		network.OverrideNetworkState,
		network.OverrideNetworkStateParams{
			Offline:            c.Offline,
			Latency:            c.Latency,
			DownloadThroughput: c.DownloadThroughput,
			UploadThroughput:   c.UploadThroughput,
		},
	)
	b.must("changing the network", err)
}

// SetCookie gives the window a cookie of the service, as a login does.
func (b *Tab) SetCookie(name, value string) {
	b.Helper()
	_, err := chromedp.Call(b.Context, network.SetCookie, network.SetCookieParams{
		Name:  name,
		Value: value,
		URL:   b.Root,
	})
	b.must("setting a cookie", err)
}

// Typed returns an action that types a text into the element that a selector names, key by key.
func Typed(what, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(css(what), text)
}

// TabTo moves the focus to the element that a selector names by the keyboard alone, unless it is
// already there, and checks that the focus is visible at each stop. After the last stop, the focus
// moves to the browser itself.
func (b *Tab) TabTo(what string) {
	b.Helper()
	const ring = `document.activeElement === document.body || [...document.querySelectorAll(":has(:focus), :focus")]` +
		`.some(e => getComputedStyle(e).outlineStyle !== "none")`
	for stop := range 40 {
		there := b.Is("document.activeElement.matches(" + Quoted(what) + ")")
		if (stop > 0 || there) && !b.Is(ring) {
			b.Report("the focus cannot be seen on %s",
				b.Text("document.activeElement.outerHTML.slice(0, 200)"))
		}
		if there {
			return
		}
		b.Type("\t")
	}
	b.Fail("Tab does not reach %s", what)
}

// Type presses keys: letters, "\r" for Enter or a space.
func (b *Tab) Type(keys string) { b.Helper(); b.Do("pressing keys", chromedp.KeyEvent(keys)) }

// Login logs a user in.
func (b *Tab) Login(name, password string) {
	b.Helper()
	b.Visit("login")
	b.Submit("#user", name, "#password", password)
}

// Pick chooses files on the sending page, with its scripts or without.
func (b *Tab) Pick(files ...string) {
	b.Helper()
	if b.Scriptless {
		b.Choose("#file", files...)
		return
	}
	b.WaitFor("#start .drop")
	b.Choose("#start input[name=file]", files...)
	b.WaitFor("#stage form .action button")
}

// Send presses the button that sends.
func (b *Tab) Send() {
	b.Helper()
	b.Click("main form .action button.primary")
}

// Link waits for the link of what was sent, and returns it.
func (b *Tab) Link() string {
	b.Helper()
	b.WaitFor("#link0")
	return b.Text("document.querySelector('#link0').value")
}

// Quoted writes a text, or another value, as a literal in a script.
func Quoted(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
