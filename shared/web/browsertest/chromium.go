package browsertest

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// View is how a visitor sees pages.
type View struct {
	name          string
	Width, Height int64
	Lang          string
	Scriptless    bool
	dark          bool
}

// Phone and Desk are views of the size of a phone and of a desktop screen.
func Phone() View { return View{name: "phone", Width: 390, Height: 844, Lang: "en"} }
func Desk() View  { return View{name: "desk", Width: 1280, Height: 800, Lang: "en"} }

// In returns the view in another language.
func (v View) In(lang string) View { v.Lang = lang; return v }

// WithoutScript returns the view of a browser that runs no scripts.
func (v View) WithoutScript() View { v.Scriptless = true; return v }

// String names the view.
func (v View) String() string {
	name := v.name + "-" + v.Lang
	if v.dark {
		name += "-dark"
	}
	if v.Scriptless {
		name += "-scriptless"
	}
	return name
}

// Executable returns the path of the browser, or "" if none is installed. The headless shell is
// Chromium without everything around its pages, so it takes half the time, but it cannot show PDF
// files. FERRY_BROWSER=whole excludes it.
func Executable() string {
	names := []string{
		"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
		"google-chrome-stable",
	}
	if os.Getenv("FERRY_BROWSER") == "whole" {
		names = names[1:]
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Need skips a test if no browser is installed.
func Need(t testing.TB) {
	t.Helper()
	if Executable() == "" {
		t.Skip("no chromium is installed: the pages are not tried in a browser")
	}
}

// agent is the User-Agent of an ordinary browser: that of a headless one would be taken for a robot.
const agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"

// shared returns the one browser of all tabs, and what closes it.
var shared = sync.OnceValues(func() (context.Context, context.CancelFunc) {
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(Executable()), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU,
		chromedp.Flag(
			"disable-dev-shm-usage",
			true,
		), chromedp.Flag("force-prefers-reduced-motion", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.UserAgent(agent),
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		panic(err)
	}
	begun.Store(true)
	return ctx, end
})

var begun atomic.Bool

// End closes the browser, if it was started.
func End() {
	if begun.Load() {
		_, end := shared()
		end()
	}
}
