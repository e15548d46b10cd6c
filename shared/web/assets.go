package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"path"
	"strconv"
	"sync"

	"ferry/shared/api/param"
	"ferry/shared/lazy"
	"ferry/shared/service"
)

//go:embed static
var static embed.FS

// assets serves the style, the scripts and the logo. Their addresses contain a hash of all of them,
// so a browser may keep each for ever, and scripts find each other by relative addresses.
type assets struct {
	version string
	files   map[string]asset
}

type asset struct {
	kind   string
	plain  func() []byte // made on first use
	packed func() []byte // gzipped; nil if that saves nothing
}

func newAssets(look service.Look) *assets {
	a := &assets{files: map[string]asset{}}
	sum := sha256.New()
	add := func(name, kind string, content []byte) {
		fmt.Fprintf(sum, "%s %d ", name, len(content))
		sum.Write(content)
		plain := sync.OnceValue(func() []byte {
			if path.Ext(name) == ".js" {
				return withoutComments(content)
			}
			return content
		})
		a.files[name] = asset{kind, plain, sync.OnceValue(func() []byte {
			return packed(plain(), gzip.BestCompression)
		})}
	}
	entries, _ := fs.ReadDir(static, "static") // in the order of their names
	for _, e := range entries {
		content, _ := static.ReadFile("static/" + e.Name())
		add(e.Name(), kindOf(e.Name()), content)
	}
	add("look.css", kindOf("look.css"), []byte(lookStyle(look)))
	if len(look.Logo) > 0 {
		add("logo", look.LogoType, look.Logo)
	}
	a.version = hex.EncodeToString(sum.Sum(nil))[:12]
	return a
}

// kindOf returns the media type of a file. Package mime would also consult the machine's own list.
func kindOf(name string) string {
	kinds := map[string]string{
		".css": "text/css",
		".js":  "text/javascript",
		".svg": "image/svg+xml",
	}
	return kinds[path.Ext(name)] + "; charset=utf-8"
}

// withoutComments drops the comments of a script, a third of what browsers would otherwise load. A comment to
// the end of a line must follow a space: "//" may also be the end of a regular expression.
func withoutComments(script []byte) []byte { return pieces().ReplaceAll(script, []byte("$1")) }

// pieces matches template literals (\x60 is a back quote) and strings, which are kept, and comments with the space
// before them.
var pieces = lazy.Regexp(`(\x60(?:[^\x60\\]|\\(?s:.))*\x60|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')` +
	`|(?:^|\s+)//.*|\s*/\*(?s:.*?)\*/`)

func packed(content []byte, level int) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, level)
	_, _ = w.Write(content)
	_ = w.Close()
	if b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

func (a *assets) address(name string) string { return "static/" + a.version + "/" + name }

// ServeHTTP implements http.Handler. A page of another version gets the current file, which
// browsers may not reuse without asking.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'") // for workers, and for a logo opened by itself
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if r.PathValue("version") == a.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	content := f.plain()
	if packed := f.packed(); packed != nil && param.TakesGzip(r) {
		content = packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content)
}

// lookStyle returns the style of an operator's colour. The text on it is black or white, whichever
// contrasts more (WCAG 2.2, contrast ratio).
func lookStyle(look service.Look) string {
	if look.Accent == "" {
		return ""
	}
	text := "#fff"
	if luminance(look.Accent) > 0.179 { // here both contrast equally
		text = "#000"
	}
	return ":root { --accent: " + look.Accent + "; --accent-text: " + text + " }\n"
}

// luminance returns the relative luminance of a colour such as #0b5cad (WCAG 2.2).
func luminance(colour string) float64 {
	n, _ := strconv.ParseUint(colour[1:], 16, 32)
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(n>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
