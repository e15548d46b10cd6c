package links_test

import (
	"slices"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// caller is alice, the one user of a service that belongs to one test.
type caller struct {
	apitest.Caller
	links *links.Service
}

func newCaller(t *testing.T, options ...apitest.Option) caller {
	t.Helper()
	s := apitest.New(t, options...)
	return caller{s.Add("alice"), file.Links(s.Data.Ports)}
}

func (c caller) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func failure[T any](_ T, err error) error { return err }

// call sends a request with the caller's bearer.
func (c caller) call(method, path string) (int, apitest.Envelope) {
	a := c.Ask(method+" "+path, "")
	return a.Code, a.Envelope
}

// get fetches a link without logging in.
func (c caller) get(link string) (int, string) {
	a := c.Send("GET "+link, "")
	return a.Code, a.Text
}

// user returns the caller as stored.
func (c caller) user() auth.User {
	c.Helper()
	u, err := c.Users.Get(c.Context(), "alice")
	c.must(err)
	return u
}

// newest returns the caller's newest file in the user area.
func (c caller) newest() files.File {
	c.Helper()
	page, err := file.Service(c.Data.Ports).List(c.Context(), c.user(), blob.Files, 0, 1)
	if err != nil || len(page.Files) != 1 {
		c.Fatalf("listing: %v, %v", page, err)
	}
	return page.Files[0].File
}

// sendToTwo uploads a file for two recipients and returns it.
func (c caller) sendToTwo(query string) files.File {
	c.Helper()
	c.Upload("file=a&c=%2B393401234567&m=carla@example.com"+query, "content")
	return c.newest()
}

// of returns the paths of a file's own link and of the recipients' links.
func (c caller) of(f files.File) []string {
	all := []string{"/download/file?k=" + c.Data.Ports.Key.File(f.Area, f.Owner, f.ID)}
	for _, id := range f.Recipients {
		all = append(all, "/download/file?k="+c.Data.Ports.Key.Recipient(f.Area, f.Owner, f.ID, id))
	}
	return all
}

func (c caller) wantStatuses(when string, paths []string, status int) {
	c.Helper()
	for i, path := range paths {
		if got, _ := c.get(path); got != status {
			c.Errorf("%s link %d gave status %d, want %d", when, i, got, status)
		}
	}
}

// find returns the file's own link, as s finds it.
func (c caller) find(s *links.Service, f files.File) links.Link {
	c.Helper()
	l, err := s.Find(c.Context(), f.Area, s.Token(f))
	c.must(err)
	return l
}

// download counts a download by the file's own link.
func (c caller) download(s *links.Service, f files.File, source string) error {
	c.Helper()
	return s.Used(c.Context(), c.find(s, f), links.Used{Whole: true, Source: source})
}

// uses returns how a file's links were used, once all uses are counted.
func (c caller) uses(f files.File) []links.Link {
	c.Helper()
	c.links.Flush(c.Context())
	all, err := c.links.Of(c.Context(), f)
	c.must(err)
	return all
}

// with returns the domain of links on another table. Its answers count as in the cloud.
func (c caller) with(t table.Table) *links.Service {
	p := c.Data.Ports.Clone()
	p.Table, p.CountWait = t, time.Hour
	return file.Links(p)
}

// receipts returns the receipts in the outbox.
func (c caller) receipts() []notify.Notice {
	c.Helper()
	return slices.DeleteFunc(c.Outbox(), func(n notify.Notice) bool { return n.Kind != notify.Receipt })
}
