package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
)

// states returns the words of all states of files and requests in a language.
func states(t *testing.T, lang string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../texts/" + lang + ".json")
	apitest.Must(t, err)
	var words map[string]any
	apitest.Must(t, json.Unmarshal(text, &words))
	for key, says := range words {
		if many, ok := says.([]any); ok {
			says = fmt.Sprint("1234 ", many[1])
		}
		if strings.HasPrefix(key, "became.") || key == "requests.full" || key == "requests.is-open" {
			all = append(all, fmt.Sprint(says))
		}
	}
	return all
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
			alice.Upload("file=Vertragsverhandlungsprotokoll+der+letzten+Sitzung.pdf&m=bob@example.com&m=carla.with.a.long.name@bounce.example.com", "x")
			id := alice.Upload("file=a", "x").ID
			alice.Ask("POST /requests", `{"title":"Vertragsverhandlungsprotokolle der letzten Sitzung"}`).Want(201)
			words, err := json.Marshal(states(t, lang))
			apitest.Must(t, err)
			at(s, b, "files")
			for _, width := range []int64{320, 768, 1280} {
				b.Resize(width, 800)
				for _, page := range []string{"files", fmt.Sprint("files?id=", id), "requests"} {
					b.Visit(page)
					b.WaitFor("main .state")
					if wrong := b.Text(fmt.Sprintf(outside, words)); wrong != "" {
						t.Errorf("%s at %d pixels: %s", page, width, wrong)
					}
					b.Picture(fmt.Sprintf("boxes-%s-%d", strings.ReplaceAll(page, "?", "-"), width))
				}
			}
		})
	}
}
