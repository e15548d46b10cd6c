package web

import (
	"embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/url"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/notify/texts"
	"ferry/shared/service"
)

//go:embed templates/*.html
var templates embed.FS

// templateOf returns a page's template within the layout of all pages. It is parsed on first use.
var templateOf = remembered(func(name string) *template.Template {
	return template.Must(template.ParseFS(
		templates,
		"templates/layout.html",
		"templates/parts.html",
		"templates/upload.html",
		"templates/"+name+".html",
	))
})

// page is what a template shows.
type page struct {
	words
	Name      string // of the page
	Look      service.Look
	User      string // who is logged in, or empty
	Languages []language
	Data      any // of this page alone
	Now       time.Time
	LogID     string    // of the request
	Again     time.Time // when to try again, after an error that says so
	assets    *assets
	wrongs    correction
}

// maxKept is the longest query value that the links to other languages keep, in bytes.
const maxKept = 1000

// language is a link to the same page in a language.
type language struct{ Tag, Name, Address string }

func (v *visit) page(name string, data any) page {
	p := page{
		words:  v.words,
		Name:   name,
		Look:   v.ports.Look,
		User:   v.who.Name,
		Data:   data,
		Now:    v.ports.Now(),
		assets: v.assets,
		wrongs: v.wrongs,
	}
	p.LogID, p.Again = fault.LogID(v.r.Context()), p.Now
	if f := fault.Of(v.err); f != nil {
		p.Again = p.Now.Add(max(f.After, time.Second))
	}
	q := url.Values{}
	maps.Copy(q, v.query)
	if v.r.Method == "GET" { // the query of a form may mean something else
		q = v.r.URL.Query()
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool {
		return len(strings.Join(values, "")) > maxKept
	})
	for _, l := range texts.All() {
		q.Set("language", l.Lang)
		p.Languages = append(p.Languages, language{l.Lang, l.Name, "?" + q.Encode()})
	}
	return p
}

// Pages returns the names of the pages for users with an account.
func (page) Pages() []string { return []string{"send", "files", "requests"} }

// Asset returns the address of a file in static/.
func (p page) Asset(name string) string { return p.assets.address(name) }

// Icon returns the address of an icon.
func (p page) Icon(name string) string { return p.Asset("icons.svg") + "#" + name }

// alert is what the template "alert" shows. Without a text it shows nothing.
type alert struct{ Kind, Icon, Text string }

// Alert returns an alert.
func (page) Alert(kind, icon, text string) alert { return alert{kind, icon, text} }

// With returns the page with other data, for a template within it.
func (p page) With(data any) page {
	p.Data = data
	return p
}

// UserField returns the page for the field of a user's name.
func (p page) UserField(user, wrong string) page {
	return p.With(loginForm{User: user, Wrong: wrong})
}

// field is a field of a form, with what is wrong with it.
type field struct {
	ID, Wrong string
	Hint      bool
}

// Field returns a field, for the templates "told" and "wrong".
func (page) Field(id, wrong string, hint bool) field { return field{id, wrong, hint} }

// passwordField is a field for a password. Its id is password, old or new; only new has a hint.
type passwordField struct {
	field
	Focus bool
}

// Label returns the key of the field's label.
func (f passwordField) Label() string { return "password." + f.ID }

// Described returns the ids of the elements that describe the field.
func (f field) Described() string {
	ids := ""
	if f.Wrong != "" {
		ids = f.ID + "-error "
	}
	if f.Hint {
		ids += f.ID + "-hint"
	}
	return strings.TrimSpace(ids)
}

// Password returns the page for the field of a password.
func (p page) Password(id, wrong string, focus bool) page {
	return p.With(passwordField{field{id, wrong, id == "new"}, focus})
}

// Isolate returns a name for use within a sentence. Its letters may run from right to left.
func (page) Isolate(name string) string { return "\u2068" + name + "\u2069" }

// moment is a time as the template "when" shows it.
type moment struct{ Machine, Relative, Exact string }

// When returns a time for the template "when".
func (p page) When(at time.Time) moment {
	return moment{at.UTC().Format(time.RFC3339), p.Relative(at, p.Now), p.Exactly(at)}
}

// Script returns the texts whose keys begin with a prefix, as JSON for the page's script.
func (p page) Script(prefix string) (template.JS, error) {
	texts := map[string]any{"lang": p.Lang, "unit": p.Unit}
	for key, w := range p.own {
		if name, ok := strings.CutPrefix(key, prefix+"."); ok && w[0] == w[1] {
			texts[name] = w[0]
		} else if ok {
			texts[name] = w
		}
	}
	b, err := json.Marshal(texts) // this escapes <, > and &
	return template.JS(b), err
}
