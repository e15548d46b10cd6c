package account

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"

	"ferry/shared/api"
	"ferry/shared/notify"
)

//go:embed page.html
var pageHTML string

// page is the content of a page. If the text of the button is empty, there is none.
type page struct {
	lang, title, text, button string
	undo                      bool // the button resumes mail
}

//go:embed texts.json
var texts []byte

// words are the texts of the pages in one language. Each %s stands for an address.
type words struct {
	Ask, Asked, Stop, Stopped, None, Again, Refused, Unreachable, NoLink, Whole, Sorry, Later string
}

// say returns the texts in a language that Ferry speaks.
func say(lang string) words {
	var all map[string]words
	if err := json.Unmarshal(texts, &all); err != nil {
		panic("texts of pages: " + err.Error()) // a test reads them
	}
	return all[lang]
}

// stopPage shows whether an address gets mail. The owner's opt-out comes first, as only that can
// be changed on the page.
func stopPage(lang, address string, e notify.Suppression) page {
	w := say(lang)
	switch {
	case e.Stopped != 0:
		return page{lang, w.Stopped, fmt.Sprintf(w.None, address), w.Again, true}
	case e.Refused != "": // mail came back or was called spam; only an operator can change that
		return page{lang, w.Refused, fmt.Sprintf(w.Unreachable, address), w.Stop, false}
	}
	return page{lang, w.Ask, fmt.Sprintf(w.Asked, address), w.Stop, false}
}

func (p page) write(w http.ResponseWriter, status int) error {
	form := ""
	if p.button != "" {
		undo := ""
		if p.undo {
			undo = `<input type="hidden" name="undo" value="1">`
		}
		form = `<form method="post">` + undo + "<button>" + p.button + "</button></form>\n"
	}
	w.Header().Set("Content-Language", p.lang)
	return api.WritePage(w, status, "form-action 'self'; base-uri 'none'; ", strings.NewReplacer(
		"{lang}", p.lang, "{title}", p.title, "{text}", html.EscapeString(p.text), "{form}", form,
	).Replace(pageHTML))
}
