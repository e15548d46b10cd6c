package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/wire"
)

const (
	// filesRows is how many files a page lists.
	filesRows = 50
	// searches is how many times a page looks through 1,000 files.
	searches = 10
	// otherLinks is the maximum number of links, besides the file's own, that its row covers: all
	// that an upload has made, or else the newest. toldNotices is the maximum number of messages
	// whose states a page looks up.
	otherLinks, toldNotices = files.MaxRecipients, 330
	// openUploads is the maximum number of incomplete uploads that a page lists.
	openUploads = 20
	// measuredUploads is how many of these are shown with their progress.
	measuredUploads = 5
)

// filesPage is what the files page shows.
type filesPage struct {
	Backup         bool
	Search, Sort   string
	Request        string // only what arrived through this request
	Rows           []fileRow
	From, To, All  int
	More           bool   // there are older files than these
	Older          bool   // the page is not about the newest files
	Previous, Next string // addresses
	Quota          *wire.Quota
	Uploads        []openUpload
	Panel          *panel
	Deleted        []int64 // just deleted, and can be restored
	KeepDays       int64   // how long files stay in the area; 0 means for ever
	BackupDays     int64   // how long deleted files stay
	query          url.Values
}

// fileRow is a file in the list.
type fileRow struct {
	files.File
	To      []string // who got it
	Became  outcome
	Current bool
	Ends    time.Time
	Page    string // address
}

// openUpload is an upload that is not complete.
type openUpload struct {
	wire.Session
	sent int64 // how many bytes have arrived; -1 if not known
}

// Share returns what percentage has arrived.
func (u openUpload) Share() int64 {
	if u.Length == nil || *u.Length == 0 {
		return 0
	}
	return max(0, u.sent) * 100 / *u.Length
}

// Orders returns the ways to sort files.
func (filesPage) Orders() []string { return []string{"new", "old", "name", "size", "ends"} }

// Page returns the address of the page with other values in its query. An empty value removes its parameter.
func (p filesPage) Page(pairs ...string) string { return "files" + changed(p.query, pairs...) }

// picked returns the values that a query has for these names, shortened.
func picked(q url.Values, names ...string) url.Values {
	some := url.Values{}
	for _, name := range names {
		if q.Get(name) != "" {
			some.Set(name, bounded(q.Get(name)))
		}
	}
	return some
}

// changed returns a query with some values changed, with its question mark.
func changed(query url.Values, pairs ...string) string {
	q := url.Values{}
	maps.Copy(q, query)
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// showFiles shows an area of the user's files, and one of them beside it. It makes these calls to
// the table: one for the login; one for the files, or in a search one for each 1,000; one for each
// 100 links of the files on the page, at most 11; one for each 33 messages, at most 10, and as many
// again if some are no longer known; two for the open uploads, and three for each of these that is
// measured; and five for one file.
func (v *visit) showFiles() error {
	p, err := v.filesOf(v.r.URL.Query())
	if err != nil {
		return err
	}
	if id := v.r.URL.Query().Get("id"); id != "" {
		if p.Panel, err = v.panel(id, p); err != nil {
			return err
		}
	} else if !p.Backup && p.query.Get("after")+p.Search+p.Request == "" {
		if err := v.addUploads(&p); err != nil {
			return err
		}
	}
	return v.show(http.StatusOK, "files", p)
}

// filesOf reads the page's query, and returns the files that it asks for.
func (v *visit) filesOf(q url.Values) (filesPage, error) {
	p := filesPage{
		Backup:  q.Get("area") == string(blob.Backup),
		Search:  strings.TrimSpace(bounded(q.Get("search"))),
		Sort:    q.Get("sort"),
		Request: q.Get("request"),
		query:   picked(q, "area", "search", "sort", "request", "after", "before", "from"),
	}
	if !slices.Contains(p.Orders(), p.Sort) {
		p.Sort = "new"
	}
	for text := range strings.SplitSeq(q.Get("deleted"), ",") {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && len(p.Deleted) < filesRows {
			p.Deleted = append(p.Deleted, id)
		}
	}
	u := v.who.User
	p.KeepDays = cmp.Or(u.KeepDays, v.ports.Retention.KeepDays)
	p.BackupDays = cmp.Or(u.BackupDays, v.ports.Retention.BackupDays)
	if p.Backup {
		p.KeepDays = p.BackupDays
	}
	if u.Quota > 0 {
		p.Quota = &wire.Quota{Limit: u.Quota, Used: max(0, u.Used)}
	}
	return p, v.addRows(&p)
}

// addRows adds the files of the page.
func (v *visit) addRows(p *filesPage) error {
	all, older, err := v.found(p)
	if err != nil {
		return err
	}
	sortFiles(all, p.Sort)
	from, _ := strconv.Atoi(p.query.Get("from"))
	if p.query.Get("from") == lastRows {
		from = (len(all) - 1) / filesRows * filesRows
	}
	from = max(0, min(from, len(all)))
	some := all[from:min(from+filesRows, len(all))]
	p.From = from + 1
	p.To = from + len(some)
	p.All = len(all)
	p.More = older != 0
	after, before := p.query.Get("after"), p.query.Get("before")
	p.Older = after != ""
	if from > 0 {
		p.Previous = p.Page("from", number(max(0, from-filesRows)))
	} else if p.Older {
		at := strings.LastIndex(before, "-")
		p.Previous = p.Page(
			"from",
			lastRows,
			"after",
			before[at+1:],
			"before",
			before[:max(0, at)],
		)
	}
	if p.To < len(all) {
		p.Next = p.Page("from", number(from+filesRows))
	} else if older != 0 {
		before = strings.TrimPrefix(before+"-"+after, "-")
		p.Next = p.Page("from", "", "after", strconv.FormatInt(older, 10), "before", before)
	}
	p.Rows, err = v.rows(p, some)
	return err
}

// lastRows as the value of "from" means the last rows of the files that the page is about.
const lastRows = "last"

// number writes a number for a query; 0 is left out.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// found returns the files that the page is about, from up to 1,000 files, or in a search from up to
// searches times as many. after is the id after which there may be more, or 0.
func (v *visit) found(p *filesPage) (all []*files.Listed, after int64, err error) {
	area := blob.Files
	if p.Backup {
		area = blob.Backup
	}
	after, _ = strconv.ParseInt(p.query.Get("after"), 10, 64)
	after = max(0, after)
	for range searches {
		page, err := v.ports.Files().Search(
			v.r.Context(),
			v.who.User,
			area,
			p.Search,
			after,
			table.MaxPage,
		)
		if err != nil {
			return nil, 0, err
		}
		for _, f := range page.Files {
			if p.Request == "" || f.By.Request == p.Request {
				all = append(all, f)
			}
		}
		after = page.Next
		if after == 0 || len(all) >= filesRows || p.Search+p.Request == "" {
			break
		}
	}
	return all, after, nil
}

func sortFiles(all []*files.Listed, by string) {
	slices.SortStableFunc(all, func(a, b *files.Listed) int {
		switch by {
		case "old":
			return cmp.Compare(a.ID, b.ID)
		case "name":
			return cmp.Compare(fold(a.Name), fold(b.Name))
		case "size":
			return cmp.Compare(b.Length, a.Length)
		case "ends":
			return cmp.Compare(uint64(a.Expires)-1, uint64(b.Expires)-1) // what never ends comes last
		}
		return cmp.Compare(b.ID, a.ID)
	})
}

// rows returns the rows of files, with what became of them.
func (v *visit) rows(p *filesPage, some []*files.Listed) ([]fileRow, error) {
	rows, records := make([]fileRow, len(some)), make([]files.File, len(some))
	open := v.r.URL.Query().Get("id")
	for i, f := range some {
		id := strconv.FormatInt(f.ID, 10)
		records[i] = f.File
		rows[i] = fileRow{
			File:    f.File,
			Ends:    param.Time(f.Expires),
			Page:    p.Page("id", id),
			Current: open == id,
		}
	}
	if p.Backup || len(rows) == 0 {
		return rows, nil
	}
	all, err := v.ports.Links().OfMany(v.r.Context(), records, otherLinks)
	if err != nil {
		return nil, err
	}
	for i, of := range all {
		all[i] = slices.DeleteFunc(of, func(l links.Link) bool {
			return !l.SeenBy(true, records[i].By.User == v.who.Name)
		})
	}
	told, err := v.told(all)
	for i := range rows {
		rows[i].tell(all[i], told, v.ports.Now())
	}
	return rows, err
}

// told returns the states of the messages that brought these links, where that matters: a recipient
// who has downloaded the file has got the message. If there are too many to look up, the newest of
// each file are looked up first.
func (v *visit) told(all [][]links.Link) (map[string]wire.Notification, error) {
	var ids []string
	told := map[string]wire.Notification{}
	for n := range otherLinks {
		for _, of := range all {
			if n >= len(of) || of[len(of)-1-n].To == "" {
				continue
			}
			l := of[len(of)-1-n]
			if l.Downloads == 0 && len(ids) < toldNotices {
				ids = append(ids, l.Recipient)
			} else {
				told[l.Recipient] = wire.Notification{State: unread}
			}
		}
	}
	known, err := notify.States(v.r.Context(), v.ports.Table, ids)
	for _, n := range known {
		told[n.ID] = wire.Notification{
			State:     string(n.State()),
			Sent:      param.Time(n.SentAt / 1000),
			Delivered: param.Time(n.Delivered / 1000),
		}
	}
	return told, err
}

// tell adds who got a file, and what became of it.
func (r *fileRow) tell(all []links.Link, told map[string]wire.Notification, now time.Time) {
	var downloads int64
	var each []string
	for _, l := range all {
		if l.To != "" {
			r.To = append(r.To, contact.Readable(l.To))
		}
		downloads += l.Downloads
		l.File = r.File // which a lost link does not know
		left := param.Time(l.Ends()).Sub(now)
		each = append(each, became(l.State(now), l.To, l.Downloads, told[l.Recipient], left))
	}
	r.Became = together(each, downloads)
	if r.Became.word == "live" && r.By.User != r.Owner {
		r.Became.word = "new"
	}
}

// addUploads adds the uploads that are running or were abandoned, and the progress of the newest.
func (v *visit) addUploads(p *filesPage) error {
	var open struct{ Uploads []openUpload }
	_, err := v.ask(question{at: "GET /uploads?limit=" + strconv.Itoa(openUploads)}, &open)
	for i := range open.Uploads {
		u := &open.Uploads[i]
		u.sent = -1
		if i >= measuredUploads {
			continue
		}
		if _, err := v.ask(question{at: "GET /uploads/" + u.ID}, u); err == nil { // otherwise it has just ended
			u.sent = 0
		}
		for _, part := range u.Arrived {
			u.sent += part.Size
		}
	}
	p.Uploads = open.Uploads
	return err
}

// HowFar says how much of an upload has arrived.
func (p page) HowFar(u openUpload) string {
	switch {
	case u.Length == nil && u.sent < 0:
		return p.T("files.streamed")
	case u.Length == nil:
		return p.Size(u.sent)
	case u.sent < 0:
		return p.Size(*u.Length)
	}
	return p.T("files.how-far", p.Size(u.sent), p.Size(*u.Length))
}

// SentTo says who got a file, or who it is from.
func (p page) SentTo(r fileRow) string {
	from := p.Sender(r.By.Request, r.By.Called, r.Uploader())
	if from != "" || len(r.To) == 0 {
		return from
	}
	if len(r.To) > 1 {
		others := max(len(r.To), min(len(r.To)+1, len(r.Recipients))) - 1
		return p.T("files.and-more", p.Isolate(r.To[0]), others)
	}
	return r.To[0]
}

// gone shows that a file no longer exists.
func (v *visit) gone(status int, wrong error) error {
	if fault.Is(wrong, fault.NotFound) || fault.Is(wrong, fault.Invalid) {
		return v.show(http.StatusNotFound, "gone", nil)
	}
	return v.showError(status, wrong)
}

// Part returns a percentage of a number.
func (page) Part(n, percent int64) int64 { return n / 100 * percent }

// Unix returns the time of Unix seconds, and Milli that of Unix milliseconds.
func (page) Unix(seconds int64) time.Time { return param.Time(seconds) }
func (page) Milli(ms int64) time.Time     { return time.UnixMilli(ms) }

// Deleted says that files are in the backup area now.
func (p page) Deleted(ids []int64) string { return p.N("files.deleted", int64(len(ids))) }
