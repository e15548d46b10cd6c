package links_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
)

const countWait = 50 * time.Millisecond

// crowded is a table of many processes. While a link is jammed, its writes conflict. If
// there is no table, they do so until their context ends, and all else is done at once.
type crowded struct {
	table.Table
	jammed atomic.Pointer[string] // its partition
	lost   atomic.Pointer[error]  // of all writes
	gets   atomic.Int64
	writes atomic.Int64 // of links
	queued atomic.Int64 // receipts
	ahead  atomic.Int64 // of the clock, which stands still otherwise
}

func (c *crowded) Get(ctx context.Context, key table.Key, into any) error {
	c.gets.Add(1)
	if c.Table == nil {
		return nil
	}
	return c.Table.Get(ctx, key, into)
}

func (c *crowded) Write(ctx context.Context, ops ...table.Op) error {
	if lost := c.lost.Load(); lost != nil {
		return *lost
	}
	for _, op := range ops {
		if op.Kind == table.KindUpdate {
			c.writes.Add(1)
		}
		if jammed := c.jammed.Load(); jammed != nil && op.Key.PK == *jammed {
			if c.Table == nil {
				<-ctx.Done()
			}
			return table.ErrBusy
		}
	}
	if c.Table == nil {
		return nil
	}
	return c.Table.Write(ctx, ops...)
}

func (c *crowded) jam(token string) {
	pk := "link#" + keys.HashToken(token)
	c.jammed.Store(&pk)
}

func (c *crowded) service() *links.Service {
	return links.New(links.Config{
		Table: c, Now: time.Now, Random: rand.Reader,
		Outbox: notify.Outbox{Table: c, Now: time.Now, Random: rand.Reader, Listening: true},
		Queued: func() { c.queued.Add(1) }, CountWait: countWait, Log: slog.New(slog.DiscardHandler),
	})
}

// TestThousandDownloadsOfOneLinkHoldNoneUp runs on a fake clock.
func TestThousandDownloadsOfOneLinkHoldNoneUp(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]links.Link{
		"a link in use": {Use: links.Use{Downloads: 1}}, "a new link": {},
	} {
		for _, source := range []string{"", "192.0.2.1"} {
			t.Run(fmt.Sprintf("%s, source %q", name, source), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					link := link
					link.Token = "hot"
					var c crowded
					c.jam(link.Token)
					s := c.service()
					defer s.Flush(t.Context())
					took := func(l links.Link) time.Duration {
						began := time.Now()
						_ = s.Used(t.Context(), l, links.Used{Whole: true, Source: source})
						return time.Since(began)
					}
					var all sync.WaitGroup
					for range 1000 {
						all.Go(func() {
							if d := took(link); d > countWait {
								t.Errorf("a download of the link waits for %s", d)
							}
						})
					}
					synctest.Wait()
					if d := took(links.Link{Token: "cold"}); d != 0 {
						t.Errorf("a download of another link waits for %s", d)
					}
					all.Wait()
					if n := c.writes.Load(); n > 1001 {
						t.Errorf("1,001 downloads made %d updates", n)
					}
					c.writes.Store(0)
					link.Downloads = 1000
					for range 1000 {
						took(link)
					}
					if n := c.writes.Load(); n > 50 {
						t.Errorf("1,000 more made %d updates", n)
					}
				})
			})
		}
	}
}

// newCrowd returns the domain of links on a table that others share, and the newest file of a caller.
func newCrowd(t *testing.T) (caller, *crowded, *links.Service, files.File) {
	t.Helper()
	c := newCaller(t, apitest.Listening)
	c.Upload("file=a", "content")
	shared, began := &crowded{Table: c.Data.Table}, time.Now()
	p := c.Data.Ports
	p.Table, p.Now = shared, func() time.Time { return began.Add(time.Duration(shared.ahead.Load())) }
	p.CountWait, p.LinkMemory = time.Hour, time.Second
	return c, shared, service.New(p, c.Service.Settings).Links(), c.Newest("alice")
}

func (c caller) use(f files.File) links.Use { return c.uses(f)[0].Use }

// TestHotLinkIsWrittenSeldom: the table refuses a count, and the uses of the next second are
// written together, as an estimate.
func TestHotLinkIsWrittenSeldom(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"", "192.0.2.%d"} {
		t.Run("source "+source, func(t *testing.T) {
			t.Parallel()
			c, shared, s, f := newCrowd(t)
			next := func(i int) string {
				if source == "" {
					return ""
				}
				return fmt.Sprintf(source, i)
			}
			c.must(c.download(s, f, next(-1)))
			expect.Equal(t, "downloads after the first", c.use(f).Downloads, 1)
			shared.jam(s.Token(f))
			if err := c.download(s, f, next(-2)); err == nil {
				t.Error("the table is jammed, but it counted")
			}
			shared.jammed.Store(nil)
			shared.writes.Store(0)
			for i := range 2000 {
				c.must(c.download(s, f, next(i)))
			}
			expect.Equal(t, "updates in the first second", shared.writes.Load(), 0)
			shared.ahead.Add(int64(time.Second))
			c.must(c.download(s, f, next(2000)))
			s.Flush(t.Context()) // the timer may have been faster
			if u, n := c.use(f), shared.writes.Load(); u.Downloads != 2003 || !u.About || n > 2 {
				t.Errorf("after 2,003 downloads: %+v in %d updates", u, n)
			}
			expect.Equal(t, "events: that of the upload and of each download", len(c.Partitions("event#")), 2004)
			if shown := c.Text(c.Request(
				"GET",
				"/files/1",
				nil,
				"Authorization",
				"Bearer "+c.Bearer,
			)); !strings.Contains(
				shown,
				`"about":true`,
			) {
				t.Errorf("its owner sees %s", shown)
			}
			c.must(c.download(s, f, next(2001)))
			s.Flush(t.Context())
			expect.Equal(t, "downloads after one more", c.use(f).Downloads, 2004)
		})
	}
}

// refusing is a table that refuses each count, and notes when.
type refusing struct {
	table.Table
	at []time.Time
}

func (r *refusing) Write(_ context.Context, ops ...table.Op) error {
	if ops[0].Kind != table.KindUpdate {
		return nil
	}
	r.at = append(r.at, time.Now())
	return table.ErrBusy
}

// TestEachRefusalDoublesThePause, up to a minute. Only the first download waits for one.
func TestEachRefusalDoublesThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r refusing
		s := (&crowded{Table: &r}).service()
		download := func() error {
			return s.Used(t.Context(), links.Link{Token: "hot", Use: links.Use{Downloads: 1}}, links.Used{Whole: true})
		}
		expect.Err(t, "the first", download(), table.ErrBusy)
		check(t, download())
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		var pauses []time.Duration
		for i, at := range r.at[1:] {
			pauses = append(pauses, at.Sub(r.at[i])/time.Second)
		}
		expect.Equal(t, "pauses in seconds", pauses, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60})
	})
}

// TestACountThatFailsIsMadeUpFor: if there is no answer, it is not known whether it was made, so making up for it may
// count twice.
func TestACountThatFailsIsMadeUpFor(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"it is refused, and none of the first is left out": `
			jam
			try
			try
			try
			free
			download
			count > 4 downloads, about true`,
		"it gets no answer": `
			download
			lose
			download > counting context deadline exceeded
			free
			count > 1 downloads, about false
			download
			count > 2 downloads, about true`,
		"that of a source gets no answer": `
			download
			lose
			download 192.0.2.1 > counting context deadline exceeded
			free
			count > 1 downloads, about false
			download
			count > 2 downloads, about true`,
		"that of a source gets no answer, and it comes again": `
			lose
			download 192.0.2.1 > counting context deadline exceeded
			free
			download 192.0.2.1
			download 192.0.2.1
			download 192.0.2.1
			count > 1 downloads`,
	}, func(t *testing.T) func(string) error {
		c, shared, s, f := newCrowd(t)
		return func(step string) error {
			verb, source, _ := strings.Cut(step, " ")
			switch verb {
			case "jam":
				shared.jam(s.Token(f))
			case "lose":
				lost := context.DeadlineExceeded
				shared.lost.Store(&lost)
			case "free":
				shared.jammed.Store(nil)
				shared.lost.Store(nil)
			case "try":
				_ = c.download(s, f, source)
			case "download":
				return c.download(s, f, source)
			case "count":
				return fmt.Errorf("%d downloads, about %v", c.use(f).Downloads, c.use(f).About)
			}
			return nil
		}
	})
}

// TestReceiptWaitsLongerThanACount: nothing makes up for it if nobody downloads again.
func TestReceiptWaitsLongerThanACount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c crowded
		s, link := c.service(), links.Link{Token: "hot", File: files.File{Area: blob.Files, Notify: true}}
		defer s.Flush(t.Context())
		if err := s.Used(t.Context(), link, links.Used{Whole: true}); c.queued.Load() != 1 || err != nil {
			t.Errorf("%d receipts are queued: %v", c.queued.Load(), err)
		}
		c.jam(link.Token)
		for _, want := range []time.Duration{time.Second, countWait, 0} { // the last finds one that goes on
			began := time.Now()
			check(t, s.Used(t.Context(), link, links.Used{Whole: true}))
			expect.Equal(t, "the wait", time.Since(began), want)
			synctest.Wait() // the first write ends in the moment in which its answer stops waiting
		}
	})
}

func TestLinkIsReadOnceASecond(t *testing.T) {
	t.Parallel()
	c, shared, s, f := newCrowd(t)
	reads := func(times int) int64 {
		t.Helper()
		shared.gets.Store(0)
		for range times {
			_, err := s.Find(t.Context(), f.Area, s.Token(f), "")
			c.must(err)
		}
		return shared.gets.Load()
	}
	expect.Equal(t, "reads of 3 look-ups before the first download", reads(3), 3)
	c.must(c.download(s, f, ""))
	expect.Equal(t, "reads of 100 look-ups in the same second", reads(100), 0)
	shared.ahead.Add(int64(time.Second))
	expect.Equal(t, "reads of 100 look-ups in the next second", reads(100), 1)
	expect.Fault(t, "in the other area", failure(s.Find(t.Context(), blob.Backup, s.Token(f), "")), fault.Unauthorized)
	_, err := c.Service.Files().Delete(t.Context(), c.user(), f.ID)
	c.must(err)
	expect.Fault(t, "its bytes are gone", failure(s.FindAgain(t.Context(), c.find(s, f))), fault.Unauthorized)
	expect.Fault(t, "after that", failure(s.Find(t.Context(), f.Area, s.Token(f), "")), fault.Unauthorized)
}

func TestRememberedLinkExpiresInTime(t *testing.T) {
	t.Parallel()
	c, shared, s, f := newCrowd(t)
	c.must(c.download(s, f, ""))
	shared.ahead.Add(int64(time.Unix(f.Expires, 0).Sub(s.Now()) - 500*time.Millisecond))
	look := func() error { _, err := s.Find(t.Context(), f.Area, s.Token(f), ""); return err }
	c.must(look())
	shared.ahead.Add(int64(600 * time.Millisecond))
	expect.Fault(t, "an expired link", look(), fault.Unauthorized)
}

func TestOneMachineRemembersNoLink(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.SendToTwo("")
	c.Get(c.LinksOf(f)[0])
	c.Calls.Reset()
	for range 3 {
		c.Get(c.LinksOf(f)[0])
	}
	expect.Equal(t, "reads of the link by 3 downloads", c.Calls.Reset()["table.Get"], 3)
}
