package links_test

import (
	"slices"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

// caller is alice, the one user of a service that belongs to one test.
type caller struct {
	apitest.Caller
	links *links.Service
}

func newCaller(t *testing.T, options ...apitest.Option) caller {
	t.Helper()
	s := apitest.New(t, options...)
	return caller{s.Add("alice"), s.Service.Links()}
}

func (c caller) must(err error) {
	c.Helper()
	expect.NoErr(c.TB, err)
}

func failure[T any](_ T, err error) error { return err }

// user returns the caller as stored.
func (c caller) user() users.User {
	c.Helper()
	u, err := c.Users.Get(c.Context(), "alice")
	c.must(err)
	return u
}

// find returns the file's own link, as s finds it.
func (c caller) find(s *links.Service, f files.File) links.Link {
	c.Helper()
	l, err := s.Find(c.Context(), f.Area, s.Token(f), "")
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
	p := c.Data.Ports
	p.Table, p.CountWait = t, time.Hour
	return service.New(p, c.Service.Settings).Links()
}

// receipts returns the receipts in the outbox.
func (c caller) receipts() []notify.Notice {
	c.Helper()
	return slices.DeleteFunc(c.Outbox(), func(n notify.Notice) bool { return n.Kind != notify.Receipt })
}
