package browsertest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Picture saves a picture of the whole page for people to look at, if FERRY_PICTURES names a folder.
func (b *Tab) Picture(name string) {
	b.Helper()
	folder := os.Getenv("FERRY_PICTURES")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
	if err != nil {
		fmt.Fprintf(os.Stderr, "no picture of %s: %v\n", name, err)
		return
	}
	b.must("making a folder", os.MkdirAll(folder, 0o755))
	b.must(
		"keeping a picture",
		os.WriteFile(filepath.Join(folder, name+"-"+b.String()+".png"), picture, 0o644),
	)
}

// All reports whether the whole matrix of views was requested.
func All() bool { return os.Getenv("FERRY_PAGES") == "all" }

// Seen waits until a page shows all of a state, takes a picture of it, checks that it fits narrow
// windows too, and has axe-core look for accessibility faults. In the whole matrix it also does so
// in dark colours.
func (b *Tab) Seen(name string, shows ...string) {
	b.Helper()
	for _, what := range shows {
		b.WaitFor(what)
	}
	b.Picture(name)
	b.axe(name, `"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"`)
	if All() && b.Lang == "en" {
		b.colours(true)
		b.Picture(name)
		b.axe(name+" in the dark", `"color-contrast", "link-in-text-block"`) // what else it looks at is the same
		b.colours(false)
	}
	b.Fits(name)
	was := b.View
	for _, width := range []int64{320, 640} { // the narrowest phone, and a desktop's 1280 at 200 % zoom
		b.Resize(width, 400)
		b.Fits(name)
	}
	b.Resize(was.Width, was.Height)
}

// colours makes the page dark, or light again.
func (b *Tab) colours(dark bool) {
	b.Helper()
	b.dark = dark
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	_, err := chromedp.Call(
		b.Context,
		emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{
				Name:  "prefers-color-scheme",
				Value: scheme,
			}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		},
	)
	b.must("setting the colours", err)
}

// Fits checks that nothing makes the page wider than the window.
func (b *Tab) Fits(name string) {
	b.Helper()
	if wide := b.Number("document.documentElement.scrollWidth"); wide > float64(b.Width) {
		b.Report("%s is %v pixels wide in a window of %d", name, wide, b.Width)
	}
}

// Contrast returns the contrast of an element's text (WCAG 2.2), from both colours as a canvas draws them.
func (b *Tab) Contrast(what string) float64 {
	b.Helper()
	return b.Number("(" + contrast + ")(" + Quoted(what) + ")")
}

const contrast = `what => {
	const { color, backgroundColor } = getComputedStyle(document.querySelector(what));
	const light = colour => {
		const c = document.createElement("canvas").getContext("2d");
		c.fillStyle = colour;
		c.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map(n => n / 255).map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const [a, b] = [light(color), light(backgroundColor)].sort();
	return (b + 0.05) / (a + 0.05);
}`

// axe runs rules of axe-core, or those with certain tags, if FERRY_AXE names the folder that contains it.
func (b *Tab) axe(name, rules string) {
	b.Helper()
	folder := os.Getenv("FERRY_AXE")
	if folder == "" {
		return
	}
	if b.Scriptless { // timers then never fire, and axe-core waits for them
		b.Is("window.setTimeout = f => { Promise.resolve().then(f); return 0 }, true")
	}
	if b.Is("!window.axe") {
		source, err := os.ReadFile(filepath.Join(folder, "axe.min.js"))
		b.must("reading axe-core", err)
		_, err = chromedp.Run(b.Context, chromedp.Evaluate[bool](string(source)+";true"))
		b.must("loading axe-core", err)
	}
	faults := get[[]struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}](
		b,
		`axe.run(document, {preload: false, resultTypes: ["violations"], runOnly: [`+rules+`]}).then(r => r.violations)`,
	)
	for _, f := range faults {
		for _, n := range f.Nodes {
			b.Report("%s: %s: %s\n%s\n%s", name, f.ID, f.Help, n.HTML, n.FailureSummary)
		}
	}
}
