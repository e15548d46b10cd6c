package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"rsc.io/qr"

	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/lazy"
	"ferry/shared/notify/texts"
)

// quiet is the width of the empty border that a QR code needs.
const quiet = 4

// qr shows a link as a QR code: a file's by k, one in the backup area by z, or a request's by r.
func (v *visit) qr() error {
	address, err := v.linkOf(v.r.URL.Query())
	if err != nil {
		return err
	}
	code, err := qr.Encode(address, qr.L)
	if err != nil {
		return fmt.Errorf("making a QR code: %w", err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	return envelope.WriteText(v.w, http.StatusOK, []byte(drawing(code)))
}

// linkOf returns the link for a token. It is built here, never from a text that a caller could choose.
func (v *visit) linkOf(q url.Values) (string, error) {
	base := v.ports.Base(v.r.Context())
	lang := v.Lang
	if l, ok := texts.Find(q.Get("lang")); ok {
		lang = l.Lang
	}
	before := map[string]string{
		"k": keys.DownloadLink(base, lang, blob.Files),
		"z": keys.DownloadLink(base, lang, blob.Backup),
		"r": base + "/requests/in?lang=" + lang + "&k=",
	}
	for name, before := range before {
		if tokenForm().MatchString(q.Get(name)) {
			return before + q.Get(name), nil
		}
	}
	return "", fault.New(fault.Invalid, "the token of a link is missing: k, z or r")
}

// drawing returns a QR code as SVG, black on white whatever the colours of the page are.
func drawing(code *qr.Code) string {
	var b strings.Builder
	size := code.Size + 2*quiet
	fmt.Fprintf(
		&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" shape-rendering="crispEdges">`,
		size,
		size,
	)
	fmt.Fprintf(&b, `<path fill="#fff" d="M0 0h%dv%dH0z"/><path d="`, size, size)
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&b, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.String()
}

var tokenForm = lazy.Regexp(`^[A-Za-z0-9_-]{43,256}$`)
