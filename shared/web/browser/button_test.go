package browser_test

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"ferry/shared/web/browsertest"
)

// TestAButtonStaysReadableUnderThePointer tries accents on which white or black text is just readable.
func TestAButtonStaysReadableUnderThePointer(t *testing.T) {
	t.Parallel()
	_, b := begin(t, browsertest.Desk())
	b.Visit("login")
	b.WaitFor("main .primary")
	box := "document.querySelector('main .primary').getBoundingClientRect()"
	x, y := b.Number(box+".x"), b.Number(box+".y")
	for accent, text := range map[string]string{"#14568f": "#fff", "#767676": "#fff", "#777777": "#000", "#85bff2": "#0a1c2d"} {
		b.Is(`document.documentElement.style.cssText = "--accent: ` + accent + `; --accent-text: ` + text + `", true`)
		b.Do("leaving the button", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
		before := b.Contrast("main .primary")
		b.Do("pointing at the button", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x+9, y+9))
		if got := b.Contrast("main .primary"); got <= before || got < 4.5 {
			t.Errorf("%s on %s has a contrast of %.2f under the pointer, and %.2f else", text, accent, got, before)
		}
	}
	b.Is(`document.querySelector("main .primary").ariaBusy = "true", true`)
	if got := b.Text(`getComputedStyle(document.querySelector("main .primary"), "::before").animationName`); got != "none" {
		t.Errorf("with reduced motion the busy sign moves: %s", got)
	}
}
