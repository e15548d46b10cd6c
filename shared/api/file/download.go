package file

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/wire"
)

// signedFor is how long a redirect to the store is valid.
const signedFor = 60 * time.Second

// partHeader is roughly how many bytes each part of an answer with several ranges adds to its
// content.
const partHeader = 256

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
	ports     *api.Ports
	files     *files.Service
	links     *links.Service
	passwords *identity.Passwords // of links
	layouts   *layouts            // of bundles
	area      blob.Area           // of downloads
	param     string
}

func newServer(p *api.Ports) server {
	return server{ports: p, files: p.Files(), links: p.Links(), passwords: p.Passwords(), layouts: &layouts{}}
}

// handle answers a download link. If the link leads nowhere or needs a password, a browser is
// redirected to the page that says so.
func (s server) handle(w http.ResponseWriter, r *http.Request) error {
	err := s.give(w, r)
	if fault.Is(err, fault.Unauthorized) && r.Method == http.MethodGet && param.Asked(r) == param.AsPage && !MadeByRobot(r) {
		w.Header().Del("WWW-Authenticate")
		return s.toPage(w, r)
	}
	return err
}

// give answers with the bytes, with the envelope, or by redirecting a browser to the link's page.
func (s server) give(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", param.VaryByShape)
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "script", "worker", "sharedworker", "serviceworker", "style", "xslt": // browsers load these though they are attachments
		return fault.New(fault.Forbidden, "a page may not load a file as its script or style")
	}
	who, wanted := askerOf(r), wants(r)
	switch {
	case wanted == wantsPage && who == person:
		return s.toPage(w, r)
	case wanted == wantsPage && who == nameless: // no page helps a program
		wanted = wantsBytes
	}
	token, err := param.Token(r, s.param, "the download token")
	if err != nil {
		return err
	}
	if len(token) > keys.LinkToken && strings.ContainsAny(token[keys.LinkToken:][:1], "_-") { // a chat has added the rest
		token = token[:keys.LinkToken]
	}
	caller := fault.CallerOf(r.Context())
	caller.Login = "link"
	claim := param.TrimToken(r.URL.Query().Get("claim"))
	link, err := s.links.Find(r.Context(), s.area, token, claim)
	if claim == "" && link.Limit > 0 && goesOn(r, link.File, wanted) {
		link, err = s.links.GoOn(link, s.area, taker(r))
	}
	if err != nil {
		return err
	}
	caller.Accept(link.File.Owner)
	if who.isRobot() && wanted.isContent() && isLed(r, link, who, wanted) {
		wanted = wantsPage
	}
	if link.Guarded() {
		if done, err := s.guard(w, r, &link, wanted, claim, &who); done || err != nil {
			return err
		}
	}
	used := links.Used{Robot: who != person} // whatever it asks for: the page, the file or a range
	if r.Method == http.MethodGet && wanted != wantsAbout {
		defer func() {
			used.Whole = used.Whole && !r.URL.Query().Has("preview")
			s.count(r, link, used)
		}()
	}
	switch wanted {
	case wantsAbout:
		return s.about(w, r, link)
	case wantsPage:
		return s.toPage(w, r)
	case wantsEnvelope:
		return s.envelope(w, r, link)
	case wantsEntries:
		return lost(r, s.entries(w, r, link, &used))
	case wantsEntry:
		return lost(r, s.entry(w, r, link, claim, &used))
	}
	return lost(r, s.bytes(w, r, link, &used))
}

// want is what a request wants from a link.
type want int

const (
	wantsBytes want = iota
	wantsPreview
	wantsPage
	wantsEnvelope
	wantsAbout
	wantsEntries // of a bundle
	wantsEntry   // one file of a bundle
)

// isContent reports whether a limit or a password guards what the request wants.
func (w want) isContent() bool { return w == wantsBytes || w == wantsEntries || w == wantsEntry }

// wants returns what a request wants, according to its query or else to the shape of answer that it
// asks for.
func wants(r *http.Request) want {
	q, asked := r.URL.Query(), param.Asked(r)
	switch {
	case q.Has("about"):
		return wantsAbout
	case q.Has("entries"):
		return wantsEntries
	case q.Has("entry"):
		return wantsEntry
	case q.Has("preview"):
		return wantsPreview
	case asked == param.AsJSON && q.Get("download") == "":
		return wantsEnvelope
	case asked == param.AsPage && q.Get("download") == "" && q.Get("claim") == "":
		return wantsPage
	}
	return wantsBytes
}

// isLed reports whether a robot that asks for content is redirected to the page. The right password
// outweighs any guess about robots; a claim does not. A browser that prefetches a claim's address
// is redirected even with the password, because it may know that too.
func isLed(r *http.Request, link links.Link, who asker, wanted want) bool {
	q := r.URL.Query()
	if link.Guarded() {
		return link.Password == "" || param.Password(r) == "" || who == prefetching && q.Has("claim")
	}
	return wanted == wantsBytes && !q.Has("download") && !q.Has("claim")
}

func (s server) envelope(w http.ResponseWriter, r *http.Request, link links.Link) error {
	f := link.File
	return envelope.Write(w, s.ports.Now(), envelope.Body{
		Description: envelope.List, User: f.Owner, Files: []envelope.File{api.Shown(f, s.plainAddress(r, link))},
	})
}

// lost adds the request's id to an error about lost bytes, so that the caller can report it and the
// operator can find the cause in the log.
func lost(r *http.Request, err error) error {
	if errors.Is(err, files.ErrLost) {
		return &fault.Fault{Kind: fault.Lost, Detail: wire.LostBytes + fault.RequestID(r.Context()), Cause: err}
	}
	return err
}

// bytes sends the bytes, or redirects to the store, and notes the outcome in used.
func (s server) bytes(w http.ResponseWriter, r *http.Request, link links.Link, used *links.Used) error {
	f := link.File
	sum, err := checksum(f)
	if err != nil {
		return err
	}
	redirects, err := s.begin(r, link, f.Length, etag(f), used)
	if err != nil {
		return err
	}
	// S3 sends this header only if a request header asks for it, which few clients would send.
	w.Header().Set("X-Amz-Checksum-Crc64nvme", wire.CRC64Text(sum))
	if redirects {
		url, err := s.files.SignGet(r.Context(), f, s.reread(link), signed(f))
		if err == nil {
			sendAway(w, r, url, used)
		}
		return err
	}
	body, err := s.files.Open(r.Context(), f, s.reread(link))
	if err != nil {
		return err
	}
	defer body.Close()
	return s.send(w, r, content{
		file: f, tag: etag(f), sum: binary.BigEndian.AppendUint64(nil, sum), newSum: newCRC64, wrong: files.ErrLost, body: body,
		knower: s.ports.Known,
	}, used)
}

func newCRC64() hash.Hash { return crc64nvme.New() }

// begin reports whether a request is answered with a redirect to the store. It returns a fault if
// the link may not give as many bytes as the answer costs.
func (s server) begin(r *http.Request, link links.Link, length int64, tag string, used *links.Used) (redirects bool, err error) {
	if r.Method != http.MethodGet { // the address is signed for GET alone
		return false, nil
	}
	redirects = s.ports.RedirectOver > 0 && length > s.ports.RedirectOver && !envelope.IsWithin(r.Context())
	n := rangeBytes(r.Header.Get("Range"), length)
	switch {
	case redirects:
		n = min(max(n, (length+15)/16), length) // the address gives access to all of the file
	case r.Header.Get("If-Range") != "" && r.Header.Get("If-Range") != tag: // then the range is ignored
		n = length
	}
	if err := s.links.MayGive(link, n); err != nil {
		return false, err
	}
	used.Begun += n
	return redirects, nil
}

// send sends the content, or the ranges of it that the request asks for, and notes the outcome in
// used.
func (s server) send(w http.ResponseWriter, r *http.Request, c content, used *links.Used) error {
	f := c.file
	setHeaders(w.Header(), f, c.tag)
	sent := &answer{ResponseWriter: w, content: c, get: r.Method == http.MethodGet}
	request, atEnd := inBytes(r, f.Length)
	http.ServeContent(sent, request, "", time.UnixMilli(f.Modified), c.body)
	caller := fault.CallerOf(r.Context())
	used.Bytes = caller.Sent
	if err := sent.fault(); err != nil {
		return err
	}
	used.Whole = caller.Status == http.StatusOK && caller.Sent == f.Length
	if length := w.Header().Get("Content-Length"); atEnd && caller.Status == http.StatusPartialContent {
		used.Source, used.Whole = identity.Source(r), length == strconv.FormatInt(caller.Sent, 10)
	}
	return nil
}

// reread returns a function that reads a link's file again.
func (s server) reread(link links.Link) files.Reread {
	return func(ctx context.Context) (files.File, error) { return s.links.FindAgain(ctx, link) }
}

// inBytes corrects where http.ServeContent departs from RFC 9110 (section 14): a range in a unit
// other than bytes must be ignored, not refused; a range that begins at the file's end, such as its
// last 0 bytes, must be refused; and a 206 cannot carry part of an empty file. atEnd reports
// whether one of the ranges includes the file's last byte.
func inBytes(r *http.Request, length int64) (mended *http.Request, atEnd bool) {
	set, bytes := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if set == "" {
		return r, false
	}
	r = r.Clone(r.Context())
	spans := spansOf(set, length)
	if !bytes || length == 0 && len(spans) > 0 {
		r.Header.Del("Range")
		return r, false
	}
	var texts []string
	for _, one := range spans {
		texts = append(texts, fmt.Sprintf("%d-%d", one.from, one.to-1))
		atEnd = atEnd || one.to == length
	}
	if texts == nil {
		texts = []string{"-"} // which is refused
	}
	r.Header.Set("Range", "bytes="+strings.Join(texts, ","))
	return r, atEnd
}

// span is a range of a file; the byte at to is not part of it.
type span struct{ from, to int64 }

// spansOf reads a set of byte ranges, and returns those that a file of this length can satisfy;
// none if the set is malformed. An empty file satisfies a range that begins at 0, because that is
// how clients ask for the whole of any file.
func spansOf(set string, length int64) (all []span) {
	for one := range strings.SplitSeq(set, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(one), "-")
		if first == "" && !isRange {
			continue
		}
		s, ok := spanOf(strings.TrimSpace(first), strings.TrimSpace(last), length)
		if !ok || !isRange {
			return nil
		}
		if s.from < max(length, 1) {
			all = append(all, s)
		}
	}
	return all
}

// spanOf reads the range between two positions, either of which may be left out. The range may be
// outside the file.
func spanOf(first, last string, length int64) (s span, ok bool) {
	if first == "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if n == 0 {
			return span{length + 1, length}, err == nil
		}
		return span{max(0, length-int64(n)), length}, err == nil
	}
	from, err := strconv.ParseUint(first, 10, 63)
	if last == "" {
		return span{int64(from), length}, err == nil
	}
	to, wrong := strconv.ParseUint(last, 10, 63)
	return span{int64(from), min(int64(to), length-1) + 1}, err == nil && wrong == nil && from <= to
}

// goesOn reports whether a request asks only for bytes after the first one, as when a client
// resumes a download or uses several connections. The request must not be able to get everything:
// an answer may ignore the ranges because of If-Range, or because together they are longer than the
// file. The length of a bundle's entry is not known yet, so for an entry only one range with a
// start and without If-Range counts.
func goesOn(r *http.Request, f files.File, wanted want) bool {
	set, bytes := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	asked, spans := r.Header.Get("If-Range"), spansOf(set, f.Length)
	if !bytes || len(spans) == 0 || wanted != wantsBytes && wanted != wantsEntry {
		return false
	}
	if wanted == wantsEntry && (asked != "" || strings.ContainsAny(set, ",") || strings.HasPrefix(strings.TrimSpace(set), "-")) {
		return false
	}
	if asked != "" && asked != etag(f) && asked != time.UnixMilli(f.Modified).UTC().Format(http.TimeFormat) {
		return false
	}
	sum := int64(0)
	for _, one := range spans {
		if one.from == 0 {
			return false
		}
		sum += one.to - one.from
	}
	return sum <= f.Length
}

func setHeaders(h http.Header, f files.File, tag string) {
	h.Set("Content-Type", contentType(f))
	h.Set("Content-Disposition", wire.Attachment(f.Name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", tag)
	if f.SHA256 != nil {
		h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(f.SHA256)+":")
	}
}

func etag(f files.File) string { return fmt.Sprintf(`"%s-%x"`, f.CRC64, f.Length) }

func contentType(f files.File) string {
	return cmp.Or(f.Type, "application/octet-stream")
}

func signed(f files.File) blob.Signed {
	return blob.Signed{Expires: signedFor, ContentType: contentType(f), ContentDisposition: wire.Attachment(f.Name)}
}

// sendAway redirects to the store.
func sendAway(w http.ResponseWriter, r *http.Request, url string, used *links.Used) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", url)
	w.WriteHeader(http.StatusFound)
	used.Bytes = used.Begun
	used.Whole = true
	used.Source = identity.Source(r)
}

// rangeBytes returns the most bytes that a GET for ranges of a file can get.
func rangeBytes(asked string, length int64) int64 {
	set, bytes := strings.CutPrefix(asked, "bytes=")
	spans := spansOf(set, length)
	switch {
	case !bytes || len(spans) == 0:
		return length
	case len(spans) > 1:
		return length + int64(len(spans))*partHeader
	}
	return spans[0].to - spans[0].from
}

// count counts the use of a link: as a download if an answer was sent in full and included the
// file's last byte, or was a redirect. A page, another range or an interrupted download does not
// count. Redirects and ranges to one source count once an hour, because a downloader may use
// several connections and resume an interrupted download.
func (s server) count(r *http.Request, link links.Link, used links.Used) {
	if used == (links.Used{}) {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // the client may be gone, as it has all it wanted
	if err := s.links.Used(ctx, link, used); err != nil {
		s.ports.Log.LogAttrs(r.Context(), slog.LevelWarn, "the use of a link was not counted", slog.String("error", err.Error()))
	}
}

// toPage redirects a browser, or a robot, to the link's page.
func (s server) toPage(w http.ResponseWriter, r *http.Request) error {
	q := url.Values{s.param: {r.URL.Query().Get(s.param)}}
	if lang := r.URL.Query().Get("lang"); lang != "" {
		q.Set("lang", lang)
	}
	return api.ToPage(w, strings.Count(strings.TrimPrefix(r.URL.Path, wire.Prefix+"/"), "/"), "l", q)
}
