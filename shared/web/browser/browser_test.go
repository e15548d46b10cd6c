// Package browser_test drives the pages in a real browser, as people do. Each flow runs once where
// a browser is installed; with FERRY_PAGES=all, as `make test-pages` does, at the size of a phone
// and of a desk, in two languages, and without scripts where that is promised. Start reading with
// tab.
package browser_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
)

// view is how a visitor sees pages.
type view struct {
	name          string
	width, height int64
	lang          string
	dark          bool
	scriptless    bool
}

func phone() view { return view{name: "phone", width: 390, height: 844, lang: "en"} }
func desk() view  { return view{name: "desk", width: 1280, height: 800, lang: "en"} }

func (v view) in(lang string) view { v.lang = lang; return v }

func (v view) withoutScript() view { v.scriptless = true; return v }

func (v view) String() string {
	name := v.name + "-" + v.lang
	if v.dark {
		name += "-dark"
	}
	if v.scriptless {
		name += "-scriptless"
	}
	return name
}

// all reports whether the whole matrix is asked for.
func all() bool { return os.Getenv("FERRY_PAGES") == "all" }

// each runs a flow once, or in the whole matrix. A flow that works without scripts is run so too.
func each(t *testing.T, scriptless bool, flow func(t *testing.T, v view)) {
	t.Parallel()
	needBrowser(t)
	views := []view{desk()}
	if all() {
		views = []view{desk(), phone(), desk().in("de"), phone().in("it")}
	}
	if scriptless {
		views = append(views, phone().withoutScript())
	}
	for _, v := range views {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			flow(t, v)
		})
	}
}

// executable returns the browser; empty if none is installed.
func executable() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func needBrowser(t testing.TB) {
	t.Helper()
	if executable() == "" {
		t.Skip("no chromium is installed: the pages are not tried in a browser")
	}
}

// agent is a browser that is no robot: that of a headless one would be taken for one.
const agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"

// shared is the one browser of all tests, which TestMain ends.
var shared = sync.OnceValue(func() context.Context {
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(executable()), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-prefers-reduced-motion", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.UserAgent(agent),
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		panic(err)
	}
	ends = cancel
	return ctx
})

var ends = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	ends()
	os.Exit(code)
}

// places bounds how many tabs are open at once: each takes a processor.
var places = make(chan struct{}, 3)

// tab is a window of a browser that knows nothing of the others.
type tab struct {
	testing.TB
	view
	ctx  context.Context
	root string // the service's address, with a slash
	mu   sync.Mutex
	said []string // errors in the console
	// expected are words of errors that are no fault, and heard counts those.
	expected []string
	heard    map[string]int
}

// open opens a window on a service.
func open(t testing.TB, root string, v view) *tab {
	t.Helper()
	needBrowser(t)
	places <- struct{}{}
	ctx, cancel := chromedp.NewContext(shared(), chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	b := &tab{TB: t, view: v, ctx: ctx, root: strings.TrimSuffix(root, "/") + "/", heard: map[string]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			b.shot("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
		stop()
		cancel()
		<-places
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.said) > 0 {
			t.Errorf("the console says: %s", strings.Join(b.said, "\n"))
		}
	})
	b.must("opening a window", chromedp.Do(ctx))
	b.prepare()
	return b
}

// prepare sets what the view has, and listens to the console.
func (b *tab) prepare() {
	b.Helper()
	set := func(doing string, err error) { b.must(doing, err) }
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: b.width, Height: b.height, DeviceScaleFactor: 1, Mobile: b.width < 600,
	})
	set("setting the size", err)
	_, err = chromedp.Call(b.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
		UserAgent: agent, AcceptLanguage: b.lang,
	})
	set("setting the language", err)
	if b.scriptless {
		_, err = chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		set("turning scripts off", err)
	}
	ctx, messages, dialogs := b.ctx, chromedp.Console(b.ctx), chromedp.Events(b.ctx, page.JavascriptDialogOpening)
	go func() {
		for _, err := range dialogs { // leave the page
			if err != nil || ctx.Err() != nil {
				return
			}
			_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}
	}()
	go func() {
		for m, err := range messages {
			if err != nil || ctx.Err() != nil {
				return
			}
			if strings.Contains(string(m.Type), "error") || m.Type == chromedp.ConsoleException {
				b.hear(m.Text)
			}
		}
	}()
}

// hear notes an error. That an answer was a refusal is no error: pages show it.
func (b *tab) hear(text string) {
	if strings.Contains(text, "the server responded with a status of 4") || strings.Contains(text, "ERR_INTERNET_DISCONNECTED") {
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

// expect lets the console have errors with these words.
func (b *tab) expect(words ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words...)
}

// hears returns how many errors had a word that was expected.
func (b *tab) hears(word string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard[word]
}

func (b *tab) must(doing string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", doing, err)
	}
}

// do runs actions.
func (b *tab) do(doing string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatalf("%s: %v\n%s\n%s", doing, err, b.address(), b.words())
	}
}

// visit opens a page: a path below the service's address, or a whole one.
func (b *tab) visit(path string) {
	b.Helper()
	if !strings.Contains(path, "://") {
		path = b.root + path
	}
	b.do("opening "+path, chromedp.Navigate(path))
}

// click presses what a CSS selector names, and fill types into it.
func (b *tab) click(what string) { b.Helper(); b.do("clicking "+what, chromedp.Click(css(what))) }

func (b *tab) fill(what, text string) {
	b.Helper()
	b.waitFor(what)
	get[bool](b, "document.querySelector("+quoted(what)+").value = '', true")
	b.do("filling in "+what, chromedp.SendKeys(css(what), text))
}

// press clicks a button that leads to another page, and waits for it.
func (b *tab) press(what string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(css(what))); err != nil {
		b.Fatalf("pressing %s: %v\n%s\n%s", what, err, b.address(), b.words())
	}
}

// leave is press for a page that may not come.
func (b *tab) leave(what string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	_, _ = chromedp.RunResponse(ctx, chromedp.Click(css(what)))
}

// waitFor waits until what a selector names can be seen.
func (b *tab) waitFor(what string) {
	b.Helper()
	b.do("waiting for "+what, chromedp.WaitVisible(css(what)))
}

// waitText waits until the page says something.
func (b *tab) waitText(text string) {
	b.Helper()
	end := time.Now().Add(30 * time.Second)
	for !strings.Contains(b.words(), text) {
		if time.Now().After(end) {
			b.Fatalf("the page does not say %q:\n%s\n%s", text, b.address(), b.words())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// waitAddress waits until the page's address has a text, and the page is whole.
func (b *tab) waitAddress(text string) {
	b.Helper()
	whole := func() bool {
		ready, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.readyState")) // fails between two pages
		return err == nil && ready == "complete" && strings.Contains(b.address(), text)
	}
	if !apitest.Eventually(whole) {
		b.Fatalf("the page is %s, not one with %s\n%s", b.address(), text, b.words())
	}
}

// lacks checks that the page has a heading, and nothing that a selector names.
func (b *tab) lacks(what string) {
	b.Helper()
	b.waitFor("main h1")
	if n := get[int](b, "document.querySelectorAll("+quoted(what)+").length"); n > 0 {
		b.Errorf("the page has %s: %s\n%s", what, b.address(), b.words())
	}
}

// choose chooses files in a file input.
func (b *tab) choose(what string, files ...string) {
	b.Helper()
	b.do("choosing files", chromedp.SetUploadFiles(css(what), files, chromedp.NodeReady))
}

// css makes a selector of a text.
func css(s string) chromedp.CSS { return chromedp.CSS(s) }

// words returns what the page says.
func (b *tab) words() string {
	b.Helper()
	return get[string](b, "document.body ? document.body.innerText : ''")
}

func (b *tab) address() string {
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	return at
}

// get evaluates an expression, even where the page's own scripts are off.
func get[T any](b *tab, expression string) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must("evaluating "+expression, err)
	return value
}

// shot keeps a picture of the whole page in .tmp/pages, for people to look at.
func (b *tab) shot(name string) {
	b.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.Logf("no picture of %s: %v", name, err)
		return
	}
	folder := filepath.Join(boottest.Root(b.TB), ".tmp", "pages")
	b.must("making a folder", os.MkdirAll(folder, 0o755))
	b.must("keeping a picture", os.WriteFile(filepath.Join(folder, name+"-"+b.String()+".png"), picture, 0o644))
}

// seen keeps a picture of a page's state and lets axe-core look for faults of accessibility; in the whole
// matrix, in dark colours too.
func (b *tab) seen(name string) {
	b.Helper()
	b.shot(name)
	if b.scriptless {
		return
	}
	b.fits(name)
	b.axe(name)
	if !all() || b.lang != "en" {
		return
	}
	b.colours(true)
	b.shot(name)
	b.axe(name + " in the dark")
	b.colours(false)
}

// colours makes the page dark, or light again.
func (b *tab) colours(dark bool) {
	b.Helper()
	b.dark = dark
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	b.must("setting the colours", err)
}

// fits checks that nothing makes the page wider than the window.
func (b *tab) fits(name string) {
	b.Helper()
	if wide := get[int64](b, "document.documentElement.scrollWidth"); wide > b.width {
		b.Errorf("%s is %d pixels wide in a window of %d", name, wide, b.width)
	}
}

var axeSource = sync.OnceValues(func() ([]byte, error) {
	return os.ReadFile(filepath.Join(os.Getenv("FERRY_AXE"), "axe.min.js"))
})

// axe runs axe-core, if FERRY_AXE is the folder that has it.
func (b *tab) axe(name string) {
	b.Helper()
	if os.Getenv("FERRY_AXE") == "" {
		return
	}
	source, err := axeSource()
	b.must("reading axe-core", err)
	_, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](string(source)+";true"))
	b.must("loading axe-core", err)
	faults := get[[]struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}](b, `axe.run(document, {runOnly: ["wcag2a","wcag2aa","wcag21a","wcag21aa","wcag22aa","best-practice"]}).then(r => r.violations)`)
	for _, f := range faults {
		for _, n := range f.Nodes {
			b.Errorf("%s: %s: %s\n%s\n%s", name, f.ID, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// downloads lets the window save files, and returns the folder.
func (b *tab) downloads() string {
	b.Helper()
	folder := b.TempDir()
	c := chromedp.FromContext(b.ctx)
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: "allow", BrowserContextID: c.BrowserContextID, DownloadPath: folder,
	})
	b.must("allowing downloads", err)
	return folder
}

// saved waits for a file in a folder.
func (b *tab) saved(folder, name string) []byte {
	b.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if content, err := os.ReadFile(filepath.Join(folder, name)); err == nil {
			if more, _ := filepath.Glob(filepath.Join(folder, "*.crdownload")); len(more) == 0 {
				return content
			}
		}
	}
	entries, _ := os.ReadDir(folder)
	b.Fatalf("%s was not saved; there is %v", name, entries)
	return nil
}

// offline cuts the window's network, or mends it.
func (b *tab) offline(cut bool) {
	b.Helper()
	conditions := []*network.Conditions{{DownloadThroughput: -1, UploadThroughput: -1, Offline: cut}}
	_, err := chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule,
		network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: conditions})
	b.must("cutting the network", err)
	_, err = chromedp.Call(b.ctx, network.OverrideNetworkState,
		network.OverrideNetworkStateParams{Offline: cut, DownloadThroughput: -1, UploadThroughput: -1})
	b.must("cutting the network", err)
}

// typed types into what a selector names, key by key.
func typed(what, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(css(what), text)
}

// login logs a user in.
func (b *tab) login(name, password string) {
	b.Helper()
	b.visit("login")
	b.fill("#user", name)
	b.fill("#password", password)
	b.press("main form button.primary")
}

const password = apitest.Password

// begin starts a service with the user alice, and opens a window on it.
func begin(t *testing.T, v view) (*apitest.Server, *tab) {
	t.Helper()
	needBrowser(t)
	s := apitest.New(t)
	s.AddUser("alice", password)
	return s, open(t, s.Root, v)
}

// quoted writes a text for a script.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
