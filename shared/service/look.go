package service

import (
	"cmp"
	"encoding/base64"
	"mime"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Look is how an operator wants the pages to look. The zero Look works.
type Look struct {
	Name             string // empty is Ferry
	Accent           string // a colour such as #0b5cad; empty is the pages' own
	Logo             []byte // empty is the name in letters
	LogoType         string // its media type
	Imprint, Privacy string // addresses; may be empty
	Intro            string // on the sending page; may be empty
	Home             string // the page at the root: send or login; empty is send
}

// Title returns the service's name.
func (l Look) Title() string { return cmp.Or(l.Name, "Ferry") }

// maxLogo is the most bytes of a logo.
const maxLogo = 256 << 10

func (e *env) look() Look {
	l := Look{
		Name:    e.getenv("FERRY_NAME"),
		Accent:  e.getenv("FERRY_ACCENT"),
		Intro:   e.getenv("FERRY_INTRO"),
		Imprint: e.page("FERRY_IMPRINT"),
		Privacy: e.page("FERRY_PRIVACY"),
		Home:    e.getenv("FERRY_HOME"),
	}
	if l.Accent != "" && !regexp.MustCompile(`^#[0-9a-fA-F]{6}$`).MatchString(l.Accent) {
		e.fail("FERRY_ACCENT", "must be a colour such as #0b5cad")
	}
	if l.Home != "" && l.Home != "send" && l.Home != "login" {
		e.fail("FERRY_HOME", "must be send or login")
	}
	l.Logo, l.LogoType = e.logo()
	return l
}

// page reads the address of one of the operator's own pages.
func (e *env) page(name string) string {
	text := e.getenv(name)
	if u, err := url.Parse(text); text != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		e.fail(name, "must be an address such as https://example.com/imprint")
	}
	return text
}

// logo reads the logo from a file or, where there are no files, from the setting itself.
func (e *env) logo() (logo []byte, kind string) {
	const name = "FERRY_LOGO"
	text, err := e.getenv(name), error(nil)
	if text == "" {
		return nil, ""
	}
	if inline, ok := strings.CutPrefix(text, "data:"); ok {
		head, data, _ := strings.Cut(inline, ";base64,")
		kind = head
		logo, err = base64.StdEncoding.DecodeString(data)
	} else {
		kind, _, _ = strings.Cut(mime.TypeByExtension(filepath.Ext(text)), ";")
		logo, err = os.ReadFile(text)
	}
	switch {
	case err != nil:
		e.fail(name, "cannot be read: "+err.Error())
	case !strings.HasPrefix(kind, "image/") || len(logo) == 0:
		e.fail(
			name,
			"must be an image: a file such as logo.svg or logo.png, or data:image/png;base64,...",
		)
	case len(logo) > maxLogo:
		e.fail(name, "must have at most 256 KiB")
	}
	return logo, kind
}
