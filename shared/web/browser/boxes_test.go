package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/web/browsertest"
)

// states returns the words, as JSON, of all states of files or of requests in a language.
func states(t *testing.T, lang string, ofRequests bool) []byte {
	t.Helper()
	text, err := os.ReadFile("../../notify/texts/" + lang + "/pages.json")
	expect.NoErr(t, err)
	var words map[string]any
	var all []string
	expect.NoErr(t, json.Unmarshal(text, &words))
	for key, says := range words {
		if many, ok := says.([]any); ok {
			says = fmt.Sprint("1234 ", many[1])
		}
		if ofRequests && (key == "requests.full" || key == "requests.is-open") ||
			!ofRequests && strings.HasPrefix(key, "became.") {
			all = append(all, fmt.Sprint(says))
		}
	}
	text, err = json.Marshal(all)
	expect.NoErr(t, err)
	return text
}

// outside is a script that puts each of some words into each state of the page, and returns those that lie
// outside of their cell or card, or over what is beside them.
const outside = `(words => {
	const wrong = [], box = (e) => e.getBoundingClientRect();
	for (const state of document.querySelectorAll("main .state")) {
		const around = [state.closest("td"), state.closest(".card")].filter(Boolean);
		const row = state.closest("tr") ?? state.parentElement;
		const beside = [...row.querySelectorAll("th > *, td:not(.became) > *, h2")].filter((e) => !e.contains(state) && box(e).width > 0);
		for (const text of words) {
			state.textContent = text;
			const s = box(state);
			if (around.map(box).some((a) => s.left < a.left || s.right > a.right + .5 || s.bottom > a.bottom + .5)) wrong.push("outside: " + text);
			if (state.scrollWidth > state.clientWidth + 1) wrong.push("cut: " + text);
			if (beside.map(box).some((b) => s.left < b.right - 1 && b.left < s.right - 1 && s.top < b.bottom - 1 && b.top < s.bottom - 1)) wrong.push("over another: " + text);
		}
	}
	return wrong.join(", ") + (document.documentElement.scrollWidth > innerWidth ? ", wider than the window" : "");
})(%s)`

func TestEachStateOfAFileOrRequestStaysInItsBox(t *testing.T) {
	for _, lang := range []string{"de", "fr"} {
		t.Run(lang, func(t *testing.T) {
			s, b := begin(t, browsertest.Desk().In(lang))
			alice := s.As("alice")
			alice.Upload(
				"file=Vertragsverhandlungsprotokoll+der+letzten+Sitzung.pdf&m=bob@example.com&m=carla.with.a.long.name@bounce.example.com",
				"x",
			)
			id := alice.Upload("file=a", "x").ID
			alice.Ask("POST /requests", `{"title":"Vertragsverhandlungsprotokolle der letzten Sitzung"}`).Want(201)
			at(s, b, "files?language="+lang)
			for _, width := range []int64{320, 768, 1280} {
				b.Resize(width, 800)
				for _, page := range []string{"files", fmt.Sprint("files?id=", id), "requests"} {
					b.Visit(page)
					b.WaitFor("main h1")
					if wrong := b.Text(fmt.Sprintf(outside, states(t, lang, page == "requests"))); wrong != "" {
						t.Errorf("%s at %d pixels: %s", page, width, wrong)
					}
					b.Picture(fmt.Sprintf("boxes-%s-%d", strings.ReplaceAll(page, "?", "-"), width))
				}
			}
		})
	}
}
