package links_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/table"
)

func TestEveryLinkWorksOnlyWhileFileIsInUserArea(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.SendToTwo("")
	all := c.LinksOf(f)
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != 3 {
		t.Fatalf("the links are %q, want 3 different ones", all)
	}
	c.WantStatuses("after the upload", all, 200)
	c.Ask("DELETE /files/1", "").Want(200)
	c.WantStatuses("after the deletion", all, 401)
	expect.Equal(t, "links of the file in the backup area", len(c.Partitions("link#")), 3)
	c.Ask("POST /files/1/restore", "").Want(200)
	c.WantStatuses("after the restoration", all, 200)
	c.Clock.Advance(31 * 24 * time.Hour)
	c.WantStatuses("after the expiry", all, 401)
}

func TestPurgedFileLeavesNoLinksOrReceipts(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(caller){
		"the sweep purges it": func(c caller) {
			for _, days := range []time.Duration{31, 91} {
				c.Clock.Advance(days * 24 * time.Hour)
				if r, err := c.Service.Sweep(c.Context()); err != nil || r.Failed != 0 {
					c.Fatalf("sweeping: %+v, %v", r, err)
				}
			}
		},
		"its owner is removed": func(c caller) {
			c.must(c.Users.Disable(c.Context(), "alice"))
			if n, err := c.Service.Files().RemoveAll(c.Context(), "alice"); n != 2 || err != nil {
				c.Fatalf("removing: %d, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			c.SendToTwo("&notify=1")
			c.Ask("DELETE /files/1", "").Want(200)
			c.SendToTwo("&notify=1")
			for item, want := range map[string]int{"link#": 6, "receipt#": 2} {
				if n := len(c.Partitions(item)); n != want {
					t.Fatalf("there are %d %s, want %d", n, item, want)
				}
			}
			end(c)
			for _, item := range []string{"link#", "receipt#", "files#", "backup#"} {
				expect.Equal(t, item, len(c.Partitions(item)), 0)
			}
		})
	}
}

func TestFileOfSessionHasLinksAndReceipt(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	service := c.Service.Files()
	sess, err := service.BeginSession(t.Context(), files.ByOf(identity.Identity{User: c.user()}), files.Plan{
		Owner:  "alice",
		Name:   "a",
		Length: 1,
		Sending: files.Sending{
			Recipients: []files.Message{{
				Channel: files.Mail,
				To:      "carla@example.com",
			}}, Tell: files.Contact{To: "alice@example.com"},
		},
	}, nil)
	c.must(err)
	c.must(failure(service.WritePart(t.Context(), sess, 1, strings.NewReader("x"), nil)))
	for range 2 { // a repeated completion changes nothing
		sess, err = service.Session(t.Context(), files.ByOf(identity.Identity{User: c.user()}), sess.ID, true)
		c.must(err)
		c.must(failure(service.Complete(t.Context(), sess, nil)))
	}
	all := c.LinksOf(c.Newest("alice"))
	if len(all) != 2 || len(c.Partitions("link#")) != 2 || len(c.Partitions("outbox#")) != 1 {
		t.Errorf("the links are %q, want 2, and one notice in the outbox", all)
	}
	c.WantStatuses("after the completion", all, 200)
	expect.Equal(t, "receipts", len(c.receipts()), 1)
}

func TestFirstDownloadQueuesOneReceipt(t *testing.T) {
	t.Parallel()
	const many = 50
	for name, k := range map[string]struct {
		links  []int // which of them are used
		robots bool
		want   int
	}{
		"many people use the file's own link": {links: []int{0}, want: 1},
		"many people use a recipient's link":  {links: []int{2}, want: 1},
		"many people use all links":           {links: []int{0, 1, 2}, want: 1},
		"only robots use the links":           {links: []int{0, 1, 2}, robots: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			all, agent, status := c.LinksOf(c.SendToTwo("&notify=1")), "curl/8", 200
			if k.robots { // they are led to the page
				status = 303
				agent = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"
			}
			var wg sync.WaitGroup
			start := make(chan struct{})
			for i := range many {
				wg.Go(func() {
					<-start
					resp := c.Request("GET", all[k.links[i%len(k.links)]], nil, "User-Agent", agent)
					expect.Equal(t, "the status", resp.StatusCode, status)
				})
			}
			close(start)
			wg.Wait()
			if got := c.receipts(); len(got) != k.want {
				t.Fatalf("there are %d receipts, want %d", len(got), k.want)
			}
			expect.Equal(t, "receipts that are still due", len(c.Partitions("receipt#")), 1-k.want)
		})
	}
}

func TestReceiptSaysWhatWasDownloadedAndByWhom(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	italian := c.user()
	italian.Lang = "it"
	c.must(c.Users.Edit(c.Context(), c.user(), italian))
	f := c.SendToTwo("&notify=1")
	c.Get(c.LinksOf(f)[2])
	got := c.receipts()
	if len(got) != 1 {
		t.Fatalf("there are %d receipts", len(got))
	}
	n := got[0]
	if n.Channel != files.Mail ||
		n.To != "alice@example.com" ||
		n.Lang != "it" ||
		n.Base != c.Base ||
		n.Owner != "alice" ||
		n.File != f.ID || n.Name != "a" || n.Length != 7 || n.Recipient != "carla@example.com" {
		t.Errorf("the receipt is %+v", n)
	}
}

func TestNoReceiptUnlessRequested(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Get(c.LinksOf(c.SendToTwo(""))[0])
	c.Get(c.LinksOf(c.SendToTwo("&notify=0"))[0])
	expect.Equal(t, "receipts", len(c.receipts()), 0)
}

// TestMovedFileGetsOneReceipt moves a file to the backup area and back, before or
// after its first download. Downloads from the backup area are the owner's own.
func TestMovedFileGetsOneReceipt(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"the download is before the move": true, "the download is after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			all := c.LinksOf(c.SendToTwo("&notify=1"))
			if before {
				c.Get(all[1])
			}
			c.Get(c.Ask("DELETE /files/1", "").File().LinkURL)
			expect.Equal(t, "receipts before the restoration", len(c.receipts()), map[bool]int{true: 1}[before])
			c.Ask("POST /files/1/restore", "").Want(200)
			for _, link := range all {
				c.Get(link)
			}
			expect.Equal(t, "receipts", len(c.receipts()), 1)
		})
	}
}

// TestFailedCallNeitherLosesNorDoublesReceipt fails each call of a first download
// in turn. The next download queues the receipt.
func TestFailedCallNeitherLosesNorDoublesReceipt(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		c := newCaller(t)
		link := c.LinksOf(c.SendToTwo("&notify=1"))[1]
		left, failed := n, false
		for _, call := range []string{"table.Get", "table.Write", "blob.Open"} {
			c.Calls.Before(call, func() error {
				if left--; left != 0 {
					return nil
				}
				failed = true
				return errors.New("away")
			})
		}
		first := c.Send("GET "+link, "").Code
		for _, call := range []string{"table.Get", "table.Write", "blob.Open"} {
			c.Calls.Before(call, nil)
		}
		if !failed {
			if n != 5 || first != 200 {
				t.Errorf("a first download takes %d calls, want 4", n-1)
			}
			break
		}
		expect.Equal(t, fmt.Sprintf("receipts queued at once when call %d fails", n), len(c.receipts()), 0)
		for range 2 {
			c.Get(link)
		}
		expect.Equal(t, fmt.Sprintf("receipts after call %d failed", n), len(c.receipts()), 1)
	}
}

func TestReceiptIsQueuedOnceEvenIfTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f, s := c.SendToTwo("&notify=1"), c.with(c.Data.Ports.Table)
	c.Calls.Before("table.Write", func() error { return apitest.ErrLost })
	for range 2 {
		expect.Err(t, "counting", c.download(s, f, ""), apitest.ErrLost)
	}
	expect.Equal(t, "receipts", len(c.receipts()), 1)
}

// busyTable is a table whose transactions are always busy.
type busyTable struct{ table.Table }

func (b busyTable) Write(ctx context.Context, ops ...table.Op) error {
	if len(ops) > 1 {
		return table.ErrBusy
	}
	return b.Table.Write(ctx, ops...)
}

func TestDownloadCountsWhileTransactionsAreBusy(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.SendToTwo("&notify=1")
	c.must(c.download(c.with(busyTable{c.Data.Table}), f, ""))
	expect.Equal(t, "downloads", c.uses(f)[0].Downloads, 1)
	if err := c.download(c.links, f, ""); len(c.receipts()) != 1 || err != nil {
		t.Errorf("the next download queues no receipt: %v", err)
	}
}

// outrun is a table of which others always take a download first, unless nobody must be remembered.
type outrun struct {
	table.Table
	c caller
}

func (o outrun) Write(ctx context.Context, ops ...table.Op) error {
	o.c.Clock.Advance(50 * time.Millisecond)
	for _, op := range ops {
		if slices.ContainsFunc(op.Changes, func(c table.Change) bool { return c.Attr == "takers" }) {
			return table.ErrBusy
		}
	}
	return o.Table.Write(ctx, ops...)
}

func TestADownloadIsTakenThoughOthersAreAlwaysFaster(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Upload("file=a&downloads=1", "content")
	s := c.with(outrun{c.Data.Table, c})
	l := c.find(s, c.Newest("alice"))
	claim, err := s.NewClaim(l)
	c.must(err)
	c.must(failure(s.Take(c.Context(), l, claim, "somebody")))
}

// TestFileMovedSinceItsLookUpIsNotLost: its bytes are only elsewhere, so that the answer
// is what the link says now.
func TestFileMovedSinceItsLookUpIsNotLost(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Upload("file=a", "content")
	f, s := c.Newest("alice"), c.Service.Files()
	found := c.find(c.links, f)
	open := func() (io.ReadSeekCloser, error) {
		return s.Open(t.Context(), found.File, func(ctx context.Context) (files.File, error) {
			return c.links.FindAgain(ctx, found)
		})
	}
	c.must(failure(s.Delete(c.Context(), c.user(), f.ID)))
	expect.Fault(t, "after a move", failure(open()), fault.Unauthorized)
	c.must(failure(s.Restore(c.Context(), c.user(), f.ID)))
	body, err := open()
	expect.NoErr(t, err)
	defer body.Close()
	if text, err := io.ReadAll(body); string(text) != "content" || err != nil {
		t.Errorf("after a move and back: %q, %v", text, err)
	}
}

// TestConnectionsOfOneDownloaderCountOnce: all have read the link before any is counted. In the
// cloud each of them is answered by another process.
func TestConnectionsOfOneDownloaderCountOnce(t *testing.T) {
	t.Parallel()
	for shape, service := range map[string]func(caller) *links.Service{
		"in one process": func(c caller) *links.Service { return c.links },
		"in the cloud":   func(c caller) *links.Service { return c.with(c.Data.Table) },
	} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, apitest.Listening)
			f := c.SendToTwo("&notify=1")
			count := func(sources ...string) {
				link := c.find(service(c), f)
				var wg sync.WaitGroup
				for _, source := range sources {
					s := service(c)
					wg.Go(func() { check(t, s.Used(t.Context(), link, links.Used{Whole: true, Source: source})) })
				}
				wg.Wait()
			}
			events := 1 // of the upload
			want := func(what string, n int64) {
				t.Helper()
				expect.Equal(t, what+": downloads", c.uses(f)[0].Downloads, n)
				expect.Equal(t, what+": events", len(c.Partitions("event#")), events+int(n))
			}
			count("a", "a", "b", "a", "b", "a")
			want("two downloaders with several connections", 2)
			count("b", "a", "c")
			want("the two again, and a third", 3)
			expect.Equal(t, "receipts", len(c.receipts()), 1)
			c.Clock.Advance(time.Hour)
			count("a")
			want("the first after an hour", 4)
			for i := range 50 {
				count(fmt.Sprint("other ", i))
			}
			want("many downloaders", 54)
			if n := len(c.find(c.links, f).Sources); n > 20 {
				t.Errorf("%d sources are stored", n)
			}
			c.Clock.Advance(-time.Hour) // it had been ahead
			count("other 49")
			want("a source of the future", 55)
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// TestALinkKnowsItsChannel also where the address tells it, and it is not stored.
func TestALinkKnowsItsChannel(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Upload("file=a", "content")
	f, made, err := c.Service.Links().Make(
		t.Context(),
		c.Service.Files(),
		c.Newest("alice"),
		files.By{User: "alice"},
		links.Order{To: []files.Message{
			{Channel: files.Mail, To: "carla@example.com"},
			{Channel: files.SMS, To: "+393401234567"},
			{Channel: "pigeon", To: "dovecot@example.com"},
		}},
	)
	c.must(err)
	read, err := c.Service.Links().Of(t.Context(), f)
	c.must(err)
	for i, want := range []files.Channel{files.Mail, files.SMS, "pigeon"} {
		expect.Equal(t, "the channel of a new link", made[i].Channel, want)
		expect.Equal(t, "the channel of a stored link", read[i+1].Channel, want)
	}
	expect.Equal(t, "the channel of the file's own link", read[0].Channel, "")
}
