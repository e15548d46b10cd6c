package file

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/wire"
)

// newDownload returns the handler of downloads from an area. param is the query
// parameter with the token.
//
// A request costs one call to the table, one to the store if bytes are sent, and one
// more to the table to count a whole download or a robot's preview. For a file whose
// uploader gets a mail at the first download, that count costs two calls. An event of
// the download costs another one.
func newDownload(area blob.Area, param string) func(*api.Ports) http.Handler {
	return func(p *api.Ports) http.Handler {
		s := newServer(p)
		s.area, s.param = area, param
		outlet := p.Outlet()
		outlet.Links = true
		return outlet.Handler(s.handle)
	}
}

// server handles requests for a file.
type server struct {
	ports   *api.Ports
	files   *files.Service
	links   *links.Service
	layouts *layouts  // of bundles
	area    blob.Area // of downloads
	param   string
}

func newServer(p *api.Ports) server {
	return server{ports: p, files: p.Files(), links: p.Links(), layouts: &layouts{}}
}

// handle answers a download link. If the link leads nowhere or needs a password, a browser is
// redirected to the page that says so.
func (s server) handle(w http.ResponseWriter, r *http.Request) error {
	d := &download{server: s, wanted: read(r), w: w, r: r}
	shown := d.isGet && d.asker == person && d.asked == param.AsPage
	err := d.give()
	if shown && fault.Is(err, fault.Unauthorized) {
		w.Header().Del("WWW-Authenticate")
		return d.toPage()
	}
	return err
}

// download is the answer to one request for a link.
type download struct {
	server
	wanted
	w    http.ResponseWriter
	r    *http.Request
	link links.Link
	used links.Used // what the answer gives
}

// give answers with the bytes, with the envelope, or by redirecting a browser to the link's page.
func (d *download) give() error {
	d.w.Header().Add("Vary", param.VaryByShape)
	switch d.r.Header.Get("Sec-Fetch-Dest") { // browsers load these though they are attachments
	case "script", "worker", "sharedworker", "serviceworker", "style", "xslt":
		return fault.New(fault.Forbidden, "a page may not load a file as its script or style")
	}
	switch {
	case d.want == wantsPage && d.asker == person:
		return d.toPage()
	case d.want == wantsPage && d.asker == nameless: // no page helps a program
		d.want = wantsBytes
	}
	if err := d.find(); err != nil {
		return err
	}
	if d.asker.isRobot() && d.want.isContent() && d.isLed() {
		d.want = wantsPage
	}
	if d.link.Guarded() {
		if done, err := d.guard(); done || err != nil {
			return err
		}
	}
	d.used.Robot = d.asker != person // whatever it asks for: the page, the file or a range
	if d.isGet && d.want != wantsAbout {
		defer d.count()
	}
	switch d.want {
	case wantsAbout:
		return d.about()
	case wantsPage:
		return d.toPage()
	case wantsEnvelope:
		return d.envelope()
	case wantsEntries:
		return d.lost(d.entries())
	case wantsEntry:
		return d.lost(d.entry())
	}
	return d.lost(d.bytes())
}

// find finds the link.
func (d *download) find() error {
	token, err := param.Token(d.r, d.param, "the download token")
	if err != nil {
		return err
	}
	if len(token) > keys.LinkToken && strings.ContainsAny(token[keys.LinkToken:][:1], "_-") {
		// A chat has added the rest.
		token = token[:keys.LinkToken]
	}
	caller := fault.CallerOf(d.r.Context())
	caller.Login = "link"
	d.link, err = d.links.Find(d.r.Context(), d.area, token, d.claim)
	if d.claim == "" && d.link.Limit > 0 && d.goesOn(d.link.File) {
		d.link, err = d.links.GoOn(d.link, d.area, d.taker)
	}
	if err == nil {
		caller.Accept(d.link.File.Owner)
	}
	return err
}

// isLed reports whether a robot that asks for content is redirected to the page. The right password
// outweighs any guess about robots; a claim does not. A browser that prefetches a claim's address
// is redirected even with the password, because it may know that too.
func (d *download) isLed() bool {
	if d.link.Guarded() {
		return d.link.Password == "" ||
			d.password == "" ||
			d.asker == prefetching && d.query.Has("claim")
	}
	return d.want == wantsBytes && !d.query.Has("download") && !d.query.Has("claim")
}

func (d *download) envelope() error {
	f := d.link.File
	return envelope.Write(d.w, d.ports.Now(), envelope.Body{
		Description: envelope.List,
		User:        f.Owner,
		Files:       []envelope.File{api.Shown(f, d.plainAddress())},
	})
}

// count counts the use of a link: as a download if an answer was sent in full and included the
// file's last byte, or was a redirect. A page, another range or an interrupted download does not
// count. Redirects and ranges to one source count once an hour, because a downloader may use
// several connections and resume an interrupted download.
func (d *download) count() {
	d.used.Whole = d.used.Whole && !d.query.Has("preview")
	if d.used == (links.Used{}) {
		return
	}
	ctx := context.WithoutCancel(d.r.Context()) // the client may be gone, as it has all it wanted
	if err := d.links.Used(ctx, d.link, d.used); err != nil {
		d.ports.Log.LogAttrs(
			ctx,
			slog.LevelWarn,
			"the use of a link was not counted",
			slog.String("error", err.Error()),
		)
	}
}

// toPage redirects a browser, or a robot, to the link's page.
func (d *download) toPage() error {
	q := url.Values{d.param: {d.query.Get(d.param)}}
	if lang := d.query.Get("lang"); lang != "" {
		q.Set("lang", lang)
	}
	return api.ToPage(
		d.w,
		strings.Count(strings.TrimPrefix(d.r.URL.Path, wire.Prefix+"/"), "/"),
		"l",
		q,
	)
}
