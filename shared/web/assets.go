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
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"ferry/shared/api/param"
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
	plain  []byte
	packed func() []byte // gzipped on first use; nil if that saves nothing
}

func newAssets(look service.Look) *assets {
	a := &assets{files: map[string]asset{}}
	sum := sha256.New()
	add := func(name, kind string, content []byte) {
		fmt.Fprintf(sum, "%s %d ", name, len(content))
		sum.Write(content)
		a.files[name] = asset{kind, content, sync.OnceValue(func() []byte { return packed(content, gzip.BestCompression) })}
	}
	entries, _ := fs.ReadDir(static, "static") // in the order of their names
	for _, e := range entries {
		content, _ := static.ReadFile("static/" + e.Name())
		if path.Ext(e.Name()) == ".js" {
			content = withoutComments(string(content))
		}
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
	kinds := map[string]string{".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	if kind := kinds[path.Ext(name)]; kind != "" {
		return kind + "; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// withoutComments drops the comments of a script, a third of what browsers would otherwise load. Behind code,
// "//" must follow a space: otherwise it may be the end of a regular expression.
func withoutComments(script string) []byte {
	var kept []byte
	for script != "" {
		n := pieceLength(script)
		piece := script[:n]
		script = script[n:]
		code := bytes.TrimRight(kept, " ")
		alone := len(code) == 0 || code[len(code)-1] == '\n'
		toEnd := strings.HasPrefix(piece, "//") && (alone || len(code) < len(kept))
		if !toEnd && !strings.HasPrefix(piece, "/*") {
			kept = append(kept, piece...)
			continue
		}
		if alone || toEnd {
			kept = code
		}
		if alone {
			script = strings.TrimPrefix(script, "\n")
		}
	}
	return kept
}

// pieceLength returns the length of what a script begins with: a comment, a string, a template literal, or
// code up to where one of these may begin.
func pieceLength(script string) int {
	if strings.HasPrefix(script, "/*") {
		comment, _, _ := strings.Cut(script, "*/")
		return min(len(comment)+2, len(script))
	}
	if strings.HasPrefix(script, "//") {
		line, _, _ := strings.Cut(script, "\n")
		return len(line)
	}
	const quotes = "`'\""
	quote := script[0]
	if strings.IndexByte(quotes, quote) < 0 {
		next := strings.IndexAny(script[1:], quotes+"/")
		if next < 0 {
			return len(script)
		}
		return 1 + next
	}
	for i := 1; i < len(script); i++ {
		switch script[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n':
			if quote != '`' {
				return i // it was no quote, but within a regular expression
			}
		}
	}
	return len(script)
}

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
	content := f.plain
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
