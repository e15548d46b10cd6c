package browser_test

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"ferry/shared/web/browsertest"
)

// contrast is that of the main button's text (WCAG 2.2), by what a canvas makes of both colours.
const contrast = `(() => {
	const { color, backgroundColor } = getComputedStyle(document.querySelector("main .primary"));
	const light = colour => {
		const c = document.createElement("canvas").getContext("2d");
		c.fillStyle = colour;
		c.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map(n => n / 255).map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const [a, b] = [light(color), light(backgroundColor)].sort();
	return (b + 0.05) / (a + 0.05);
})()`

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
		before := b.Number(contrast)
		b.Do("pointing at the button", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x+9, y+9))
		if got := b.Number(contrast); got <= before || got < 4.5 {
			t.Errorf("%s on %s has a contrast of %.2f under the pointer, and %.2f else", text, accent, got, before)
		}
	}
	b.Is(`document.querySelector("main .primary").ariaBusy = "true", true`)
	if got := b.Text(`getComputedStyle(document.querySelector("main .primary"), "::before").animationName`); got != "none" {
		t.Errorf("with reduced motion the busy sign moves: %s", got)
	}
}
