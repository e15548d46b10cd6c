package api

import (
	"embed"
	"html"
	"net/http"
	"strings"

	"ferry/shared/envelope"
)

// pages has the templates of all pages, in the syntax of html/template.
//
//go:embed pages/*.html
var pages embed.FS

// WritePage sends an HTML page to a browser, by a template and what it shows. The page may
// contain styles, and anything else that policy allows. It must not be framed, indexed or
// cached, and its address, which contains a token, is not sent to other sites.
func WritePage(w http.ResponseWriter, status int, policy, page string, shown map[string]string) error {
	template, err := pages.ReadFile("pages/" + page + ".html")
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+policy+"frame-ancestors 'none'")
	return envelope.WriteText(w, status, []byte(fill(string(template), shown)))
}

// fill executes a template that has only {{.Name}} and, not nested, {{if .Name}} ... {{end}}.
// html/template does the same, as a test shows. But it calls methods by name, so the linker
// keeps every call of the AWS SDK: the function of downloads would have 19.3 MB, not 10.8.
func fill(template string, shown map[string]string) string {
	var b strings.Builder
	visible := true
	for piece := range strings.SplitSeq("}}"+template, "{{") {
		action, text, _ := strings.Cut(piece, "}}")
		if name, isIf := strings.CutPrefix(action, "if ."); isIf {
			visible = shown[name] != ""
		} else if name, isValue := strings.CutPrefix(action, "."); isValue && visible {
			b.WriteString(html.EscapeString(shown[name]))
		} else if action == "end" {
			visible = true
		}
		if visible {
			b.WriteString(text)
		}
	}
	return b.String()
}
