package links_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// slow is a table whose writes take some time, and end with their context.
type slow struct {
	table.Table
	takes            time.Duration
	first            func() error // what becomes of the first write, which takes a second
	downloads, begun atomic.Int64 // that it counted, and hours
	linkOf           func() links.Link
	longest          atomic.Int64
}

func (s *slow) Get(_ context.Context, key table.Key, into any) error {
	if !strings.HasPrefix(key.PK, "link#") {
		return table.ErrNotFound
	}
	*(into.(*table.Item)) = table.NewItem(key, nil, func(_ table.Item, into any) error {
		*(into.(*links.Link)) = s.linkOf()
		return nil
	})
	return nil
}

func (s *slow) Write(ctx context.Context, ops ...table.Op) error {
	if first := s.first; first != nil {
		s.first = nil
		time.Sleep(time.Second - time.Millisecond)
		return first()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
	}
	for _, op := range ops {
		for _, c := range op.Changes {
			switch c.Attr {
			case "downloads":
				s.downloads.Add(c.Value.(int64))
			case "hour":
				s.begun.Add(1)
			}
		}
	}
	return nil
}

func (s *slow) service(wait time.Duration) *links.Service {
	ports := auth.Ports{Table: s, Now: time.Now, Random: rand.Reader}
	return links.New(links.Config{
		Ports: ports, Outbox: notify.NewOutbox(ports, notify.Limits{}, "", false), Queued: func() {}, CountWait: wait, Bytes: 1 << 40,
		Log: slog.New(slog.DiscardHandler),
	})
}

// use downloads n times, one each pause, and notes the longest time that an answer waited.
func (s *slow) use(n int, pause time.Duration, do func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			time.Sleep(time.Duration(i) * pause)
			began := time.Now()
			do()
			s.longest.Store(max(s.longest.Load(), int64(time.Since(began))))
		})
	}
	all.Wait()
	time.Sleep(time.Second) // for what the timer writes
}

func TestNoDownloadOfASteadyStreamIsLostOrHeldUp(t *testing.T) {
	t.Parallel()
	for what, link := range map[string]links.Link{
		"counted before":            {Token: "hot", Use: links.Use{Downloads: 1}},
		"the first, with a receipt": {Token: "hot", File: files.File{Area: blob.Files, Notify: true}},
	} {
		for _, wait := range []time.Duration{0, countWait} {
			for _, takes := range []time.Duration{3 * time.Millisecond, 30 * time.Millisecond} {
				t.Run(fmt.Sprint(what, ", at most ", wait, ", a write takes ", takes), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						s := &slow{takes: takes}
						service := s.service(wait)
						s.use(1000, time.Millisecond, func() { check(t, service.Used(t.Context(), link, links.Used{Whole: true})) })
						if n, most := s.downloads.Load(), time.Duration(s.longest.Load()); n != 1000 || most > 2*takes {
							t.Errorf("%d of 1,000 downloads are counted, and one waited for %s", n, most)
						}
					})
				})
			}
		}
	}
}

// TestASlowTableLosesNoDownload, nor does it hold up an answer.
func TestASlowTableLosesNoDownload(t *testing.T) {
	t.Parallel()
	for what, link := range map[string]links.Link{
		"the first":                 {Token: "slow", File: files.File{Area: blob.Files}},
		"counted before":            {Token: "slow", Use: links.Use{Downloads: 1}},
		"the first, with a receipt": {Token: "slow", File: files.File{Area: blob.Files, Notify: true}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slow{takes: 500 * time.Millisecond}
				service := s.service(countWait)
				s.use(30, time.Second, func() { check(t, service.Used(t.Context(), link, links.Used{Whole: true})) })
				wait := countWait
				if link.File.Notify {
					wait = time.Second
				}
				service.Flush(t.Context())
				if n, most := s.downloads.Load(), time.Duration(s.longest.Load()); n != 30 || most > wait {
					t.Errorf("%d of 30 downloads are counted, and one waited for %s", n, most)
				}
			})
		})
	}
}

// TestDownloadsBesideAWriteThatFailsAreCounted, though nobody uses the link again.
func TestDownloadsBesideAWriteThatFailsAreCounted(t *testing.T) {
	t.Parallel()
	for what, first := range map[string]func() error{
		"an error": func() error { return errors.New("no answer") },
		"a panic":  func() error { panic("a fault in a table") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slow{first: first}
				service := s.service(countWait)
				s.use(20, 10*time.Millisecond, func() {
					check(t, service.Used(t.Context(), links.Link{Token: "slow", Use: links.Use{Downloads: 1}}, links.Used{Whole: true}))
				})
				time.Sleep(time.Second)
				if n := s.downloads.Load(); n != 19 {
					t.Errorf("%d of 20 downloads are counted, want all but that of the failed write", n)
				}
			})
		})
	}
}

func TestAFlushBesideDownloadsDoesNoHarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 60 * time.Millisecond}
		service := s.service(countWait)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				check(t, service.Used(t.Context(), links.Link{Token: fmt.Sprint(i % 7)}, links.Used{Whole: true}))
				if i%3 == 0 {
					service.Flush(t.Context())
				}
			})
		}
		all.Wait()
		service.Flush(t.Context())
		if n := s.downloads.Load(); n != 100 {
			t.Errorf("%d of 100 downloads are counted", n)
		}
	})
}

// TestEachHourIsBegunWhileAnswersTakeLong: each use brings a link that was read before the last
// write.
func TestEachHourIsBegunWhileAnswersTakeLong(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, countWait} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{takes: time.Millisecond, linkOf: func() links.Link { return links.Link{File: files.File{Area: blob.Files}, Use: links.Use{Downloads: 1}} }}
			service := s.service(wait)
			s.use(3*60, time.Minute, func() {
				l, err := service.Find(t.Context(), blob.Files, "hot")
				check(t, err)
				check(t, service.MayGive(l, 10))
				time.Sleep(100 * time.Second)
				check(t, service.Used(t.Context(), l, links.Used{Begun: 10, Bytes: 10, Whole: true}))
			})
			if n := s.begun.Load(); n < 3 {
				t.Errorf("in 3 hours %d were begun", n)
			}
		})
	}
}

func TestASourceWhoseCountWasLostCountsAgain(t *testing.T) {
	t.Parallel()
	c, shared, s, f := newCrowd(t, "")
	lost := context.DeadlineExceeded
	shared.lost.Store(&lost)
	if err := c.download(s, f, "192.0.2.1"); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	shared.lost.Store(nil)
	for range 3 {
		c.must(c.download(s, f, "192.0.2.1"))
	}
	if u := c.use(f); u.Downloads != 1 {
		t.Errorf("%+v, want one download", u)
	}
}

// TestUsesThatTheTableRefusedAreWrittenLater, though nobody uses their links again.
func TestUsesThatTheTableRefusedAreWrittenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c crowded
		s := c.service()
		for i := range 100 {
			token := fmt.Sprint("link ", i)
			c.jam(token)
			check(t, s.Used(t.Context(), links.Link{Token: token, Use: links.Use{Downloads: 1}}, links.Used{Whole: true}))
		}
		c.jammed.Store(nil)
		time.Sleep(time.Minute) // each flush may wait for a write that the table refuses late
		if n := c.writes.Load(); n != 200 {
			t.Errorf("100 refused updates and their repetitions are %d updates", n)
		}
	})
}
