package file

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
)

// wanted is what a request wants from a link, and who asks. It is read from the request once.
type wanted struct {
	want     want
	asked    param.Shape
	asker    asker
	taker    string // who a download is for; see takerOf
	isGet    bool   // and no HEAD
	query    url.Values
	claim    string
	password string
	ranges   string // the header Range
	ifRange  string
}

func read(r *http.Request) wanted {
	who := askerOf(r)
	d := wanted{
		asked:    param.Asked(r),
		asker:    who,
		taker:    takerOf(r, who),
		isGet:    r.Method == http.MethodGet,
		query:    r.URL.Query(),
		password: param.Password(r),
		ranges:   r.Header.Get("Range"),
		ifRange:  r.Header.Get("If-Range"),
	}
	d.claim = param.TrimToken(d.query.Get("claim"))
	d.want = d.wants()
	return d
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
func (w want) isContent() bool {
	return w == wantsBytes || w == wantsEntries || w == wantsEntry
}

// wants returns what a request wants, according to its query or else to the shape of answer that it
// asks for.
func (d wanted) wants() want {
	switch {
	case d.query.Has("about"):
		return wantsAbout
	case d.query.Has("entries"):
		return wantsEntries
	case d.query.Has("entry"):
		return wantsEntry
	case d.query.Has("preview"):
		return wantsPreview
	case d.asked == param.AsJSON && d.query.Get("download") == "":
		return wantsEnvelope
	case d.asked == param.AsPage && d.query.Get("download") == "" && d.claim == "":
		return wantsPage
	}
	return wantsBytes
}

// takerOf identifies the client of a request by address and program, so that later requests from
// there can be recognized. It is empty if these do not say enough, as behind a proxy that does not
// pass on its client's address.
func takerOf(r *http.Request, a asker) string {
	addr := fault.Address(r)
	if !addr.IsValid() || addr.IsLoopback() && envelope.ViaProxy(r) || a != person {
		return ""
	}
	return addr.String() + " " + r.Header.Get("User-Agent")
}

// goesOn reports whether a request asks only for bytes after the first one, as when a client
// resumes a download or uses several connections. The request must not be able to get everything:
// an answer may ignore the ranges because of If-Range, or because together they are longer than the
// file. The length of a bundle's entry is not known yet, so for an entry only one range with a
// start and without If-Range counts.
func (d wanted) goesOn(f files.File) bool {
	set, bytes := strings.CutPrefix(d.ranges, "bytes=")
	spans := spansOf(set, f.Length)
	if !bytes || len(spans) == 0 || d.want != wantsBytes && d.want != wantsEntry {
		return false
	}
	oneStart := d.ifRange == "" &&
		!strings.Contains(set, ",") &&
		!strings.HasPrefix(strings.TrimSpace(set), "-")
	if d.want == wantsEntry && !oneStart {
		return false
	}
	if d.ifRange != "" &&
		d.ifRange != etag(f) &&
		d.ifRange != time.UnixMilli(f.Modified).UTC().Format(http.TimeFormat) {
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
