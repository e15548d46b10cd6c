package files_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
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
	for i, op := range ops {
		if op.Kind == table.KindUpdate {
			c.writes.Add(1)
		}
		if jammed := c.jammed.Load(); jammed != nil && op.Key.PK == *jammed {
			if c.Table == nil {
				<-ctx.Done()
			}
			return table.ErrBusy
		}
		ops[i].Delayed = false
	}
	if c.Table == nil {
		return nil
	}
	return c.Table.Write(ctx, ops...)
}

func (c *crowded) jam(token string) {
	pk := "link#" + auth.HashToken(token)
	c.jammed.Store(&pk)
}

func (c *crowded) service() *files.Service {
	ports := auth.Ports{Table: c, Now: time.Now, Random: rand.Reader}
	return files.New(files.Config{Ports: ports, Outbox: notify.NewOutbox(ports, notify.Limits{}, "", true), CountWait: countWait})
}

// TestThousandDownloadsOfOneLinkHoldNoneUp runs on a fake clock.
func TestThousandDownloadsOfOneLinkHoldNoneUp(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]files.Link{
		"a link in use": {Use: files.Use{Downloads: 1}}, "a new link": {},
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
					took := func(l files.Link) time.Duration {
						began := time.Now()
						_, _ = s.CountDownload(t.Context(), l, source)
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
					if d := took(files.Link{Token: "cold"}); d != 0 {
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

// newCrowd returns a service that shares its table, and the newest file of a caller.
func newCrowd(t *testing.T, query string) (caller, *crowded, *files.Service, files.File) {
	t.Helper()
	c := callerOf(apitest.New(t, apitest.Listening))
	c.Put(c.bearer, "file=a"+query, "content")
	shared, began := &crowded{Table: c.Data.Table}, time.Now()
	p := c.Data.Ports
	ports := p.Ports
	ports.Table, ports.Now = shared, func() time.Time { return began.Add(time.Duration(shared.ahead.Load())) }
	return c, shared, files.New(files.Config{
		Ports: ports, Blobs: p.Blobs, Outbox: file.Outbox(p), CountWait: time.Hour, LinkMemory: time.Second,
	}), c.newest()
}

func (c caller) use(f files.File) files.Use {
	c.Helper()
	all, err := file.Service(c.Data.Ports).Links(c.Context(), f)
	c.must(err)
	return all[0].Use
}

func (c caller) download(s *files.Service, f files.File, source string) error {
	c.Helper()
	link, err := s.ByToken(c.Context(), f.Area, s.Token(f))
	c.must(err)
	_, err = s.CountDownload(c.Context(), link, source)
	return err
}

func TestHotLinkIsCountedByASampleThatSaysSo(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"", "192.0.2.%d"} {
		t.Run("source "+source, func(t *testing.T) {
			t.Parallel()
			c, shared, s, f := newCrowd(t, "")
			next := func(i int) string {
				if source == "" {
					return ""
				}
				return fmt.Sprintf(source, i)
			}
			c.must(c.download(s, f, next(-1)))
			if u := c.use(f); u.Downloads != 1 || u.About {
				t.Errorf("the first download: %+v", u)
			}
			shared.jam(s.Token(f))
			if err := c.download(s, f, next(-2)); err == nil {
				t.Error("the table is jammed, but it counted")
			}
			shared.jammed.Store(nil)
			shared.writes.Store(0)
			for i := range 2000 {
				c.must(c.download(s, f, next(i)))
			}
			if u := c.use(f); u.Downloads < 1700 || u.Downloads > 2300 || !u.About {
				t.Errorf("after 2,002 downloads: %+v", u)
			}
			if n := shared.writes.Load(); n < 850 || n > 1150 {
				t.Errorf("there were %d updates, want about 1,000", n)
			}
			if n := len(c.Partitions("event#")); n != 2003 {
				t.Errorf("%d events were recorded, want one of the upload and one of each download", n)
			}
			if shown := c.Text(c.Request("GET", "/files/1", nil, "Authorization", "Bearer "+c.bearer)); !strings.Contains(shown, `"about":true`) {
				t.Errorf("its owner sees %s", shown)
			}
			before := c.use(f).Downloads
			shared.ahead.Add(int64(time.Minute))
			c.must(c.download(s, f, next(2001)))
			c.must(c.download(s, f, next(2002)))
			if u := c.use(f); u.Downloads != before+2 {
				t.Errorf("a minute later, 2 more are %+v, before %d", u, before)
			}
		})
	}
}

func TestRefusedCountIsMadeUpFor(t *testing.T) {
	t.Parallel()
	c, shared, s, f := newCrowd(t, "")
	shared.jam(s.Token(f))
	for range 3 { // none of the first is left out
		_ = c.download(s, f, "")
	}
	shared.jammed.Store(nil)
	c.must(c.download(s, f, ""))
	if u := c.use(f); u.Downloads != 4 || !u.About {
		t.Errorf("the use is %+v, want 4 downloads", u)
	}
}

// TestCountWithoutAnAnswerMakesTheNumberAnEstimate: whether it was made is not known, so
// making up for it may count twice.
func TestCountWithoutAnAnswerMakesTheNumberAnEstimate(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"", "192.0.2.1"} {
		c, shared, s, f := newCrowd(t, "")
		c.must(c.download(s, f, ""))
		lost := context.DeadlineExceeded
		shared.lost.Store(&lost)
		if err := c.download(s, f, source); !errors.Is(err, lost) {
			t.Errorf("without an answer: %v", err)
		}
		shared.lost.Store(nil)
		if u := c.use(f); u.Downloads != 1 || u.About {
			t.Errorf("after a count that was not made: %+v", u)
		}
		c.must(c.download(s, f, ""))
		if u := c.use(f); u.Downloads != 2 || !u.About {
			t.Errorf("after the next one: %+v", u)
		}
	}
}

// TestReceiptWaitsLongerThanACount: nothing makes up for it if nobody downloads again.
func TestReceiptWaitsLongerThanACount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c crowded
		s, link := c.service(), files.Link{Token: "hot", File: files.File{Area: blob.Files, Notify: true}}
		if queued, err := s.CountDownload(t.Context(), link, ""); !queued || err != nil {
			t.Errorf("the receipt is queued: %v, %v", queued, err)
		}
		c.jam(link.Token)
		for _, want := range []time.Duration{time.Second, countWait, countWait} {
			began := time.Now()
			if queued, err := s.CountDownload(t.Context(), link, ""); queued || !errors.Is(err, table.ErrBusy) || time.Since(began) != want {
				t.Errorf("it waits for %s (%v, %v), want %s", time.Since(began), queued, err, want)
			}
		}
	})
}

func TestLinkIsReadOnceASecond(t *testing.T) {
	t.Parallel()
	c, shared, s, f := newCrowd(t, "")
	reads := func(times int) int64 {
		t.Helper()
		shared.gets.Store(0)
		for range times {
			_, err := s.ByToken(t.Context(), f.Area, s.Token(f))
			c.must(err)
		}
		return shared.gets.Load()
	}
	if n := reads(3); n != 3 {
		t.Errorf("before the first download, 3 look-ups read %d times", n)
	}
	c.must(c.download(s, f, ""))
	if n := reads(100); n != 1 {
		t.Errorf("100 look-ups in a second read %d times", n)
	}
	shared.ahead.Add(int64(time.Second))
	if n := reads(100); n != 1 {
		t.Errorf("100 look-ups in the next second read %d times", n)
	}
	if _, err := s.ByToken(t.Context(), blob.Backup, s.Token(f)); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("in the other area: %v", err)
	}
	_, err := file.Service(c.Data.Ports).Delete(t.Context(), c.user(), f.ID)
	c.must(err)
	link, err := s.ByToken(t.Context(), f.Area, s.Token(f))
	c.must(err)
	if _, err := s.Open(t.Context(), link); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("its bytes are gone: %v", err)
	}
	if _, err := s.ByToken(t.Context(), f.Area, s.Token(f)); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("after that: %v", err)
	}
}

func TestRememberedLinkExpiresInTime(t *testing.T) {
	t.Parallel()
	c, shared, s, f := newCrowd(t, "")
	c.must(c.download(s, f, ""))
	shared.ahead.Add(int64(time.Unix(f.Expires, 0).Sub(s.Now()) - 500*time.Millisecond))
	look := func() error { _, err := s.ByToken(t.Context(), f.Area, s.Token(f)); return err }
	c.must(look())
	shared.ahead.Add(int64(600 * time.Millisecond))
	if err := look(); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("an expired link: %v", err)
	}
}

func TestOneMachineRemembersNoLink(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.sendToTwo("")
	c.get(c.links(f)[0])
	c.Calls.Reset()
	for range 3 {
		c.get(c.links(f)[0])
	}
	if n := c.Calls.Reset()["table.Get"]; n != 3 {
		t.Errorf("3 downloads read the link %d times", n)
	}
}
