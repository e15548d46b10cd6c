package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/contact"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// stored is a file as the API returns it.
type stored struct {
	file.Record
	Expires time.Time `json:"expires"` // instead of the record's text
}

// Count returns how many files and folders a bundle has.
func (s stored) Count() int64 { return int64(s.Entries) }

// panel is what a page shows of one file.
type panel struct {
	stored
	Page     string // the address of the page with this panel
	Close    string // and of the page without it
	Shown    []shownLink
	Lifetime []string // how long the file may stay, in the API's format
	Extends  []string // how long its links may work
}

// shownLink is a link of a file, as the file's page shows it.
type shownLink struct {
	wire.Link
	Became  outcome
	Problem string // why a message did not arrive; empty if it may have arrived
	Live    bool   // it can be changed
	// EndsEarly says that the link ends before the file does.
	EndsEarly bool
	Number    int // on the page
}

// panel gets a file from the API.
func (v *visit) panel(id string, list filesPage) (*panel, error) {
	v.again = v.gone
	at := "GET /files/" + url.PathEscape(id)
	if list.Backup {
		at += "?area=backup"
	}
	var p panel
	if _, err := v.ask(question{at: at}, &p); err != nil {
		return nil, err
	}
	v.again = nil
	p.Page, p.Close = list.Page("id", id), list.Page()
	left := p.Expires.Sub(v.ports.Now())
	for _, days := range []int64{1, 7, 14, 30, 90} {
		text := strconv.FormatInt(days, 10) + "d"
		if p.Expires.IsZero() || time.Duration(days)*24*time.Hour < left {
			p.Extends = append(p.Extends, text)
		}
		if list.KeepDays == 0 || days <= list.KeepDays {
			p.Lifetime = append(p.Lifetime, text)
		}
	}
	for i, l := range p.Links {
		p.Shown = append(p.Shown, v.shownLink(p, l, i+1))
	}
	slices.SortStableFunc(p.Shown, func(a, b shownLink) int { return rankOf(a) - rankOf(b) })
	return &p, nil
}

// rankOf puts the file's own link behind those that people got, and links that have ended last.
func rankOf(l shownLink) int {
	switch {
	case !l.Live:
		return 2
	case l.To == "":
		return 1
	}
	return 0
}

func (v *visit) shownLink(p panel, l wire.Link, number int) shownLink {
	s := shownLink{Link: l, Number: number}
	s.EndsEarly = !l.Expires.IsZero() && l.Expires != p.Expires
	s.Live = l.State != string(links.Ended) && l.State != string(links.Deleted)
	var m wire.Notification
	for _, n := range p.Notifications {
		if n.ID == l.ID {
			m = n
		}
	}
	if m.State == string(notify.Failed) {
		s.Problem = v.WhyMissing(m.LastError)
	}
	word := became(links.State(l.State), l.To, l.Used.Count, m, l.Expires.Sub(v.ports.Now()))
	s.Became = outcome{word, l.Used.Count}
	if s.Became.word == "live" {
		s.Became.word = "works"
	}
	return s
}

// Sender says who sent a file: a guest of a request, or another user. It is empty for one's own files.
func (p page) Sender(request, by, from string) string {
	switch {
	case by != "":
		return p.T("files.from-guest", p.Isolate(by))
	case request != "":
		return p.T("files.from-request")
	case from != "":
		return p.T("files.from", p.Isolate(from))
	}
	return ""
}

// LinkName says whose link it is.
func (p page) LinkName(l shownLink) string {
	switch {
	case l.To != "":
		return contact.Readable(l.To)
	case l.ID == links.Own:
		return p.T("file.own")
	}
	return p.T("file.another")
}

// Days writes a time span such as 7d.
func (p page) Days(span string) string {
	n, _ := strconv.ParseInt(span[:len(span)-1], 10, 64)
	return p.T("file.in", p.N("time.days", n))
}

// Own returns the address that downloads the file by its own link, or the link's page if it has a
// limit or a password, or "" if it has ended.
func (p *panel) Own() string {
	for _, l := range p.Links {
		switch {
		case l.ID != links.Own || !links.State(l.State).Gives():
		case l.Protected || l.Downloads > 0:
			_, query, _ := strings.Cut(p.LinkURL, "?")
			return "l?" + query
		default:
			return p.LinkURL + "&download=1"
		}
	}
	return ""
}

// Use says how often a link was used, and how often it may be.
func (p page) Use(l shownLink) string {
	switch {
	case l.Downloads > 0:
		return p.T("file.used-of", l.Used.Count, p.N("file.times", l.Downloads))
	case l.Used.Count > 0:
		return p.N("file.times", l.Used.Count)
	}
	return p.T("file.unused")
}

// QRCode returns the address of a link's QR code.
func (page) QRCode(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	q := u.Query()
	if strings.HasSuffix(u.Path, "/requests/in") {
		q = url.Values{"r": q["k"], "lang": q["lang"]}
	}
	return "qr?" + q.Encode()
}
