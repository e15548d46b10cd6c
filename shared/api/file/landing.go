package file

import (
	"html"
	"strconv"
	"strings"
	"time"

	"ferry/shared/files"
)

// words are the page's texts in one language.
type words struct{ download, until, date string }

func wordsOf(lang string) words {
	switch lang {
	case "it":
		return words{"Scarica", "Disponibile fino al", "02/01/2006"}
	case "es":
		return words{"Descargar", "Disponible hasta el", "02/01/2006"}
	case "fr":
		return words{"Télécharger", "Disponible jusqu’au", "02/01/2006"}
	case "de":
		return words{"Herunterladen", "Verfügbar bis", "02.01.2006"}
	default:
		return words{"Download", "Available until", "2 January 2006"}
	}
}

const pageHTML = `<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; background: #f3f5f7; color: #17212b }
main { background: #fff; padding: 2.5rem; border-radius: .75rem; max-width: 32rem; margin: 1rem; box-shadow: 0 1px 4px #0002; text-align: center }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; margin: 0 0 .25rem }
p { margin: 0; color: #55626f }
a { display: inline-block; margin-top: 1.5rem; padding: .75rem 2rem; border-radius: .5rem; background: #0b5cad; color: #fff; text-decoration: none; font-weight: 600 }
a:hover, a:focus { background: #084a8c }
@media (prefers-color-scheme: dark) { body { background: #10161c; color: #e6ebf0 } main { background: #1b242d } p { color: #a3b0bd } }
</style>
</head>
<body>
<main>
<h1>{name}</h1>
<p>{size}{until}</p>
<a href="{href}" download>{download}</a>
</main>
</body>
</html>
`

func page(f files.File, lang, href string) string {
	w := wordsOf(lang)
	until := ""
	if f.Expires != 0 {
		until = "<br>" + w.until + " " + time.Unix(f.Expires, 0).UTC().Format(w.date)
	}
	return strings.NewReplacer(
		"{lang}", lang, "{name}", html.EscapeString(f.Name), "{size}", size(f.Length, lang), "{until}", until,
		"{href}", html.EscapeString(href), "{download}", w.download,
	).Replace(pageHTML)
}

// size writes a number of bytes in decimal units, as a person in that language
// would.
func size(n int64, lang string) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	if lang == "fr" {
		units = []string{"o", "ko", "Mo", "Go", "To"}
	}
	v, unit := float64(n), 0
	for v >= 999.5 && unit < len(units)-1 {
		v /= 1000
		unit++
	}
	digits := 1
	if unit == 0 || v >= 100 {
		digits = 0
	}
	text := strings.TrimSuffix(strconv.FormatFloat(v, 'f', digits, 64), ".0")
	if lang != "en" {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text + "\u00a0" + units[unit]
}
