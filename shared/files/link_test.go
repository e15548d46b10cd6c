package files_test

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

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
)

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
	c.Put(c.bearer, "file=a&c=%2B393401234567&m=carla@example.com"+query, "content")
	return c.newest()
}

// links returns the paths of a file's own link and of the recipients' links.
func (c caller) links(f files.File) []string {
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

// receipts returns the receipts in the outbox.
func (c caller) receipts() (all []notify.Notice) {
	c.Helper()
	for shard := range 8 {
		page, err := c.Data.Table.Query(c.Context(), table.Query{PK: fmt.Sprint("outbox#", shard), Limit: table.MaxPage})
		c.must(err)
		for _, item := range page.Items {
			var n notify.Notice
			c.must(item.Decode(&n))
			if n.Kind == notify.Receipt {
				all = append(all, n)
			}
		}
	}
	return all
}

func TestEveryLinkWorksOnlyWhileFileIsInUserArea(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.sendToTwo("")
	all := c.links(f)
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != 3 {
		t.Fatalf("the links are %q, want 3 different ones", all)
	}
	c.wantStatuses("after the upload", all, 200)
	c.call("DELETE", "/files/1")
	c.wantStatuses("after the deletion", all, 401)
	if n := len(c.Partitions("link#")); n != 3 {
		t.Errorf("the file in the backup area has %d links, want 3", n)
	}
	c.call("POST", "/files/1/restore")
	c.wantStatuses("after the restoration", all, 200)
	c.Clock.Advance(31 * 24 * time.Hour)
	c.wantStatuses("after the expiry", all, 401)
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
			c.must(c.Users.Disable(c.Context(), c.name))
			if n, err := file.Service(c.Data.Ports).RemoveAll(c.Context(), c.name); n != 2 || err != nil {
				c.Fatalf("removing: %d, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			c.sendToTwo("&notify=1")
			c.call("DELETE", "/files/1")
			c.sendToTwo("&notify=1")
			for item, want := range map[string]int{"link#": 6, "receipt#": 2} {
				if n := len(c.Partitions(item)); n != want {
					t.Fatalf("there are %d %s, want %d", n, item, want)
				}
			}
			end(c)
			for _, item := range []string{"link#", "receipt#", "files#", "backup#"} {
				if left := c.Partitions(item); len(left) != 0 {
					t.Errorf("items are left: %v", left)
				}
			}
		})
	}
}

func TestFileOfSessionHasLinksAndReceipt(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	service := file.Service(c.Data.Ports)
	sess, err := service.BeginSession(t.Context(), c.by(), files.Plan{Owner: c.name, Name: "a", Length: 1, Sending: files.Sending{
		Recipients: []files.Message{{Channel: files.Mail, To: "carla@example.com"}}, Receipt: files.Receipt{To: "alice@example.com"},
	}}, nil)
	c.must(err)
	c.must(failure(service.WritePart(t.Context(), sess, 1, strings.NewReader("x"), nil)))
	for range 2 { // a repeated completion changes nothing
		sess, err = service.Session(t.Context(), c.by(), sess.ID)
		c.must(err)
		c.must(failure(service.Complete(t.Context(), sess, nil)))
	}
	all := c.links(c.newest())
	if len(all) != 2 || len(c.Partitions("link#")) != 2 || len(c.Partitions("outbox#")) != 1 {
		t.Errorf("the links are %q, want 2, and one notice in the outbox", all)
	}
	c.wantStatuses("after the completion", all, 200)
	if got := c.receipts(); len(got) != 1 {
		t.Errorf("there are %d receipts", len(got))
	}
}

func TestFirstDownloadQueuesOneReceipt(t *testing.T) {
	t.Parallel()
	const many = 50
	for name, k := range map[string]struct {
		links  []int // which of them are used
		robots bool
		want   int
	}{
		"many people use the file's own link": {[]int{0}, false, 1},
		"many people use a recipient's link":  {[]int{2}, false, 1},
		"many people use all links":           {[]int{0, 1, 2}, false, 1},
		"only robots use the links":           {[]int{0, 1, 2}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			all, agent := c.links(c.sendToTwo("&notify=1")), "curl/8"
			if k.robots {
				agent = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"
			}
			var wg sync.WaitGroup
			start := make(chan struct{})
			for i := range many {
				wg.Go(func() {
					<-start
					resp := c.Request("GET", all[k.links[i%len(k.links)]], nil, "User-Agent", agent)
					if resp.StatusCode != 200 {
						t.Errorf("status %d", resp.StatusCode)
					}
				})
			}
			close(start)
			wg.Wait()
			if got := c.receipts(); len(got) != k.want {
				t.Fatalf("there are %d receipts, want %d", len(got), k.want)
			}
			if left := len(c.Partitions("receipt#")); left != 1-k.want {
				t.Errorf("%d receipts are still due", left)
			}
		})
	}
}

func TestReceiptSaysWhatWasDownloadedAndByWhom(t *testing.T) {
	t.Parallel()
	c := newCaller(t, func(u *auth.User) { u.Lang = "it" })
	f := c.sendToTwo("&notify=1")
	c.get(c.links(f)[2])
	got := c.receipts()
	if len(got) != 1 {
		t.Fatalf("there are %d receipts", len(got))
	}
	n := got[0]
	if n.Channel != notify.Mail || n.To != "alice@example.com" || n.Lang != "it" || n.Base != c.Base || n.Owner != "alice" ||
		n.File != f.ID || n.Name != "a" || n.Length != 7 || n.Recipient != "carla@example.com" {
		t.Errorf("the receipt is %+v", n)
	}
}

func TestNoReceiptUnlessRequested(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.get(c.links(c.sendToTwo(""))[0])
	c.get(c.links(c.sendToTwo("&notify=0"))[0])
	if got := c.receipts(); len(got) != 0 {
		t.Errorf("there are %d receipts", len(got))
	}
}

// TestMovedFileGetsOneReceipt moves a file to the backup area and back, before or
// after its first download. Downloads from the backup area are the owner's own.
func TestMovedFileGetsOneReceipt(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"the download is before the move": true, "the download is after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			all := c.links(c.sendToTwo("&notify=1"))
			if before {
				c.get(all[1])
			}
			_, moved := c.call("DELETE", "/files/1")
			if status, _ := c.get(moved.Files[0].LinkURL); status != 200 {
				t.Fatalf("the backup link gave status %d", status)
			}
			if got, want := len(c.receipts()), map[bool]int{true: 1}[before]; got != want {
				t.Errorf("before the restoration there are %d receipts, want %d", got, want)
			}
			c.call("POST", "/files/1/restore")
			for _, link := range all {
				c.get(link)
			}
			if got := len(c.receipts()); got != 1 {
				t.Errorf("there are %d receipts, want 1", got)
			}
		})
	}
}

// TestFailedCallNeitherLosesNorDoublesReceipt fails each call of a first download
// in turn. The next download queues the receipt.
func TestFailedCallNeitherLosesNorDoublesReceipt(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		c := newCaller(t)
		link := c.links(c.sendToTwo("&notify=1"))[1]
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
		first, _ := c.get(link)
		for _, call := range []string{"table.Get", "table.Write", "blob.Open"} {
			c.Calls.Before(call, nil)
		}
		if !failed {
			if n != 5 || first != 200 {
				t.Errorf("a first download takes %d calls, want 4", n-1)
			}
			break
		}
		if got := len(c.receipts()); got != 0 {
			t.Errorf("when call %d fails, %d receipts are queued at once, want 0", n, got)
		}
		for range 2 {
			if status, _ := c.get(link); status != 200 {
				t.Errorf("after call %d failed, the next download gave status %d", n, status)
			}
		}
		if got := len(c.receipts()); got != 1 {
			t.Errorf("after call %d failed, there are %d receipts, want 1", n, got)
		}
	}
}

// TestReceiptIsQueuedOnceEvenIfTheAnswerIsLost lets the table do the transaction
// and report an error.
func TestReceiptIsQueuedOnceEvenIfTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.sendToTwo("&notify=1")
	service := c.service(lossyTable{c.Data.Table})
	for range 2 {
		if err := c.download(service, f, ""); !errors.Is(err, errLost) {
			t.Errorf("counting gave %v, want %v", err, errLost)
		}
	}
	if got := len(c.receipts()); got != 1 {
		t.Errorf("there are %d receipts, want 1", got)
	}
}

// failingTable is a table without delayed writes; its call number n fails.
type failingTable struct {
	table.Table
	n *int
}

func (f failingTable) fails() error {
	if *f.n--; *f.n == 0 {
		return errors.New("away")
	}
	return nil
}

func (f failingTable) Get(ctx context.Context, key table.Key, into any) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Table.Get(ctx, key, into)
}

func (f failingTable) Write(ctx context.Context, ops ...table.Op) error {
	for i := range ops {
		ops[i].Delayed = false
	}
	if err := f.fails(); err != nil {
		return err
	}
	return f.Table.Write(ctx, ops...)
}

// TestFailedCountLeavesReceiptDue fails each call of a count in turn, and then
// counts downloads through the same link.
func TestFailedCountLeavesReceiptDue(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2; n++ {
		c := newCaller(t)
		f := c.sendToTwo("&notify=1")
		left := 0
		service := c.service(failingTable{c.Data.Table, &left})
		count := func() (bool, error) {
			link, err := file.Service(c.Data.Ports).ByToken(t.Context(), blob.Files, service.Token(f))
			c.must(err)
			return service.CountDownload(t.Context(), link, "")
		}
		left = n
		if queued, err := count(); queued || err == nil {
			t.Errorf("when call %d fails, the count gave %v, %v", n, queued, err)
		}
		for _, want := range []bool{true, false} {
			if queued, err := count(); queued != want || err != nil {
				t.Errorf("after that the count gave %v, %v, want %v", queued, err, want)
			}
		}
	}
}

// busyTable is a table without delayed writes; its transactions are always busy.
type busyTable struct{ table.Table }

func (b busyTable) Write(ctx context.Context, ops ...table.Op) error {
	if len(ops) > 1 {
		return table.ErrBusy
	}
	return b.Table.Write(ctx, table.Op{Kind: ops[0].Kind, Key: ops[0].Key, Changes: ops[0].Changes, Conds: ops[0].Conds})
}

func TestDownloadCountsWhileTransactionsAreBusy(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.sendToTwo("&notify=1")
	count := func(s *files.Service) bool {
		link, err := s.ByToken(t.Context(), blob.Files, s.Token(f))
		c.must(err)
		queued, err := s.CountDownload(t.Context(), link, "")
		if err != nil {
			t.Error(err)
		}
		return queued
	}
	if count(c.service(busyTable{c.Data.Table})) {
		t.Error("a receipt is reported, but the transaction was busy")
	}
	if uses, err := file.Service(c.Data.Ports).Links(t.Context(), f); err != nil || uses[0].Downloads != 1 {
		t.Errorf("the use is %+v, %v, want one download", uses, err)
	}
	if !count(c.service(c.Data.Table)) {
		t.Error("the next download queues no receipt")
	}
}

// TestFileMovedSinceItsLookUpIsNotLost: its bytes are only elsewhere, so that the answer
// is what the link says now.
func TestFileMovedSinceItsLookUpIsNotLost(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Put(c.bearer, "file=a", "content")
	f, s := c.newest(), file.Service(c.Data.Ports)
	found, err := s.ByToken(c.Context(), f.Area, s.Token(f))
	c.must(err)
	_, err = s.Delete(c.Context(), c.user(), f.ID)
	c.must(err)
	if _, err = s.Open(c.Context(), found); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("after a move: %v, want Unauthorized", err)
	}
	_, err = s.Restore(c.Context(), c.user(), f.ID)
	c.must(err)
	body, err := s.Open(c.Context(), found)
	if err != nil {
		t.Fatalf("after a move and back: %v", err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); string(text) != "content" || err != nil {
		t.Errorf("after a move and back: %q, %v", text, err)
	}
}

// TestConnectionsOfOneDownloaderCountOnce: all have read the link before any is counted.
func TestConnectionsOfOneDownloaderCountOnce(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f, s := c.sendToTwo("&notify=1"), file.Service(c.Data.Ports)
	count := func(sources ...string) {
		link, err := s.ByToken(t.Context(), f.Area, s.Token(f))
		c.must(err)
		var wg sync.WaitGroup
		for _, source := range sources {
			wg.Go(func() {
				if _, err := s.CountDownload(t.Context(), link, source); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	want := func(what string, n int64) {
		t.Helper()
		if uses, err := s.Links(t.Context(), f); err != nil || uses[0].Downloads != n {
			t.Errorf("%s: %+v, %v, want %d downloads", what, uses, err, n)
		}
	}
	count("a", "a", "b", "a", "b", "a")
	want("two downloaders with several connections", 2)
	count("b", "a", "c")
	want("the two again, and a third", 3)
	if got := len(c.receipts()); got != 1 {
		t.Errorf("there are %d receipts, want 1", got)
	}
	c.Clock.Advance(time.Hour)
	count("a")
	want("the first after an hour", 4)
	for i := range 50 {
		count(fmt.Sprint("other ", i))
	}
	want("many downloaders", 54)
	if link, err := s.ByToken(t.Context(), f.Area, s.Token(f)); err != nil || len(link.Sources) > 20 {
		t.Errorf("%d sources are stored, %v", len(link.Sources), err)
	}
	c.Clock.Advance(-time.Hour) // it had been ahead
	count("other 49")
	want("a source of the future", 55)
}
