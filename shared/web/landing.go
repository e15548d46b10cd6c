package web

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/links"
	"ferry/shared/notify/texts"
	"ferry/shared/wire"
)

// landingPage is what the page of a link shows.
type landingPage struct {
	About wire.About
	// Link is the link's address in the API, relative to the page, and at the same below wire.Prefix.
	// Download is the address that begins a download.
	Link, at, Download string
	Curl               string // the command that downloads it
	Preview            string // image, film, sound or text; empty if there is none
	Text               string // its first lines
	Locked             bool   // the password is missing
	Closed             bool   // a bundle whose content is hidden because its link has a limit
	Wrong              string
	Query              url.Values // of this page
	Bundle             *bundlePage
}

// landing shows a link to whoever opens it. It counts nothing and uses up no download.
func (v *visit) landing() error {
	q := v.r.URL.Query()
	p, err := v.link(q)
	if isLocked(err) && q.Has("claim") {
		q.Del("claim") // the claim has ended; the link has not
		return v.to("l", q)
	}
	if err != nil {
		return err
	}
	return v.showLink(p, q)
}

// showLink shows a link. For a bundle, it shows the part that a query asks for.
func (v *visit) showLink(p landingPage, q url.Values) (err error) {
	unclaimed := p.Query.Get("claim") == ""
	p.Locked = p.About.Protected && unclaimed
	p.Closed = p.About.Bundle && p.About.Left != nil && unclaimed && !p.Locked
	v.again = nil
	switch {
	case p.Locked, p.Closed:
	case p.About.Bundle:
		p.Bundle, err = v.bundle(p, q)
		if err != nil {
			return err
		}
	default:
		v.preview(&p)
	}
	if p.Bundle != nil && p.Bundle.Picture != nil {
		return v.show(http.StatusOK, "picture", p)
	}
	return v.show(http.StatusOK, "landing", p)
}

// link gets what a link leads to. If it leads to nothing, the page says why.
func (v *visit) link(q url.Values) (p landingPage, err error) {
	v.again = v.dead
	at, token := "/download/file?", "k"
	if q.Has("z") {
		at, token = "/download/file/backup?", "z"
	}
	p.Query = picked(q, token, "claim")
	if l, ok := texts.Find(q.Get("lang")); ok {
		p.Query.Set("lang", l.Lang)
	}
	_, err = v.ask(question{at: "GET " + at + p.Query.Encode() + "&about"}, &p.About)
	if !p.guarded() {
		p.Query.Del("claim")
	}
	p.at = at + p.Query.Encode()
	p.Link = strings.TrimPrefix(wire.Prefix, "/") + p.at
	p.Download = p.Link + "&download=1"
	v.query = p.Query
	p.Curl = `"` + v.ports.Base(v.r.Context()) + at +
		url.Values{token: p.Query[token]}.Encode() + `"`
	if p.About.Protected {
		p.Curl = "-u :PASSWORD " + p.Curl
	}
	return p, err
}

// bounded shortens a value from a query, because a page may repeat it a thousand times.
func bounded(text string) string {
	if len(text) > maxWords {
		return strings.ToValidUTF8(text[:maxWords], "")
	}
	return text
}

// asked returns the API call for what a link gives, with more in its query. Even if a robot opens
// the page, the call has Ferry's own User-Agent, and counts nothing.
func (p landingPage) asked(more string) question {
	return question{
		at:     "GET " + p.at + more,
		header: http.Header{"User-Agent": {"Ferry"}, "Accept": {"*/*"}},
	}
}

// guarded reports whether the link has a limit or a password.
func (p landingPage) guarded() bool { return p.About.Protected || p.About.Left != nil }

// dead says why a link no longer works.
func (v *visit) dead(status int, wrong error) error { return v.deadOf("", status, wrong) }

// deadOf is dead for a kind of link: the keys of its texts begin with kind.
func (v *visit) deadOf(kind string, status int, wrong error) error {
	state, ok := errors.AsType[links.State](wrong)
	why := kind + strings.ReplaceAll(string(state), " ", "-")
	switch {
	case fault.Is(wrong, fault.Invalid), ok && !v.has("dead."+why+".title"):
		why = kind + "unknown"
	case !ok:
		return v.showError(status, wrong)
	}
	over, _ := errors.AsType[links.Over](wrong)
	return v.show(status, "dead", deadPage{why, over.Sender, param.Time(over.Since)})
}

// deadPage says why a link no longer works, with its sender and since when, if these are known.
type deadPage struct {
	Why, Sender string
	Since       time.Time
}

// Icon returns the icon of the reason.
func (d deadPage) Icon() string {
	icons := map[string]string{
		"used-up":  "download",
		"ended":    "close",
		"deleted":  "trash",
		"restored": "restore",
		"unknown":  "link",
	}
	return cmp.Or(icons[strings.TrimPrefix(d.Why, "request-")], "clock")
}

// unlock checks the password of a link, or opens a bundle with a limit. It then shows the page with
// a claim, by which the link can be downloaded. It does not redirect to the download, because
// browsers do not let a form lead to the store.
func (v *visit) unlock(form url.Values) error {
	form.Del("claim")
	p, err := v.link(form)
	if err != nil {
		return err
	}
	if !p.guarded() {
		return v.to("l", p.Query)
	}
	v.again = func(status int, wrong error) error {
		p.Locked, p.Wrong = true, v.T("landing.wrong")
		if !fault.Is(wrong, fault.Unauthorized) {
			p.Wrong = v.wrong(wrong)
		}
		return v.show(status, "landing", p)
	}
	q := p.asked("&download=1")
	q.header.Set("Range", "bytes=0-0") // in case the link has just lost its limit
	if password := form.Get("password"); password != "" || p.About.Protected {
		q.header.Set("Ferry-Link-Password", password)
	}
	found, err := v.ask(q, nil)
	if err != nil {
		return err
	}
	to, err := url.Parse(found.header.Get("Location"))
	if err != nil {
		return fault.Wrap(err, "reading a claim")
	}
	form.Set("claim", to.Query().Get("claim"))
	if p, err = v.link(form); err != nil {
		return err
	}
	return v.showLink(p, url.Values{})
}

// The limits of what a page shows of a file's content.
const (
	maxPreviewText  = 16 << 10 // bytes
	maxPreviewLines = 40
	maxPreviewImage = 20 << 20 // bytes
)

// preview adds what the page shows of the file's content, if its link has neither limit nor password.
func (v *visit) preview(p *landingPage) {
	kind, length := wire.PreviewKind(p.About.Name, p.About.Type), param.Value(p.About.Length)
	switch {
	case p.guarded(), length == 0, kind == "", kind == "image" && length > maxPreviewImage:
		return
	case kind != "text":
		p.Preview = kind
		v.findStore(p.Query)
		return
	}
	q := p.asked("&preview")
	q.header.Set("Range", "bytes=0-16383")
	found, err := v.ask(q, nil)
	if err != nil { // the file can still be downloaded
		return
	}
	p.Text = firstLines(found.body.String())
	if p.Text != "" {
		p.Preview = kind
	}
}

// firstLines returns the beginning of a text, or "" if it is not text.
func firstLines(text string) string {
	if len(text) == maxPreviewText { // it may end within a character
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(text); i++ {
			text = text[:len(text)-1]
		}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return ""
	}
	lines := strings.SplitAfterN(text, "\n", maxPreviewLines+1)
	return strings.Join(lines[:min(len(lines), maxPreviewLines)], "")
}

// findStore lets the page load bytes from a link's store, if browsers are redirected there.
func (v *visit) findStore(q url.Values) {
	area := blob.Files
	if q.Has("z") {
		area = blob.Backup
	}
	v.addStore(area)
}

// addStore lets the page reach the store of an area. The store's address is known only from a
// signed address, of any key. On one machine there is none, because the service serves the bytes itself.
func (v *visit) addStore(area blob.Area) {
	signed, err := v.ports.Blobs.SignGet(
		v.r.Context(),
		area,
		"the/origin",
		blob.Signed{Expires: time.Minute},
	)
	if err != nil {
		if !errors.Is(err, blob.ErrUnsupported) {
			v.ports.Log.WarnContext(v.r.Context(), "a page cannot reach the store",
				"error", err)
		}
		return
	}
	if u, err := url.Parse(signed); err == nil {
		v.store = u.Scheme + "://" + u.Host
	}
}

// Sends returns the heading of a link's page.
func (p page) Sends(l landingPage) template.HTML {
	key, what := wire.FileKind(l.About.Name, l.About.Type), ""
	switch {
	case l.About.Bundle && l.Locked:
		key = "protected-files"
	case l.Locked:
		key = "protected"
	case l.About.Bundle:
		key = "bundle"
		if l.Bundle != nil && l.Bundle.Whole {
			key, what = "files", p.N("landing.files", l.Bundle.Files)
		}
	case key == "bundle", key == "text": // any archive, and any document
		key = "file"
	}
	if l.About.Sender == "" { // a guest may not have said who they are
		return template.HTML(template.HTMLEscapeString(strings.ReplaceAll(
			p.T("landing.comes."+key),
			"%s",
			what,
		)))
	}
	if what != "" {
		return p.Of("landing.sends."+key, l.About.Sender, what)
	}
	return p.Of("landing.sends."+key, l.About.Sender)
}

// Found says how many files a search has found.
func (p page) Found(b *bundlePage) string {
	if b.More {
		return p.T("bundle.found-first", p.N("landing.files", b.Files), p.Isolate(b.Search))
	}
	return strings.Replace(p.N("bundle.found", b.Files), "%s", p.Isolate(b.Search), 1)
}
