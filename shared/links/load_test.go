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

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/service"
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
	return links.New(links.Config{
		Table: s, Now: time.Now, Random: rand.Reader,
		Outbox: notify.Outbox{
			Table:  s,
			Now:    time.Now,
			Random: rand.Reader,
		}, Queued: func() {}, CountWait: wait, Bytes: 1 << 40,
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
	time.Sleep(time.Minute) // for what the timer writes
}

// TestNoDownloadIsLostOrHeldUp has a steady stream of them and, where writes take long, one each second.
func TestNoDownloadIsLostOrHeldUp(t *testing.T) {
	t.Parallel()
	for what, link := range map[string]links.Link{
		"the first":                 {Token: "hot", File: files.File{Area: blob.Files}},
		"counted before":            {Token: "hot", Use: links.Use{Downloads: 1}},
		"the first, with a receipt": {Token: "hot", File: files.File{Area: blob.Files, Notify: true}},
	} {
		for _, wait := range []time.Duration{0, countWait} {
			for _, takes := range []time.Duration{3 * time.Millisecond, 30 * time.Millisecond, 500 * time.Millisecond} {
				t.Run(fmt.Sprint(what, ", at most ", wait, ", a write takes ", takes), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						s := &slow{takes: takes}
						service := s.service(wait)
						n, pause := 1000, time.Millisecond
						most := 2 * takes
						if takes > countWait {
							n, pause = 30, time.Second
						}
						if takes > countWait && !link.File.Notify {
							most = countWait
						}
						s.use(n, pause, func() { check(t, service.Used(t.Context(), link, links.Used{Whole: true})) })
						expect.Equal(t, "downloads that are counted", s.downloads.Load(), int64(n))
						if longest := time.Duration(s.longest.Load()); longest > most {
							t.Errorf("one waited for %s, want at most %s", longest, most)
						}
					})
				})
			}
		}
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
					check(t, service.Used(t.Context(), links.Link{
						Token: "slow",
						Use:   links.Use{Downloads: 1},
					}, links.Used{Whole: true}))
				})
				expect.Equal(t, "downloads, all but that of the failed write", s.downloads.Load(), 19)
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
		expect.Equal(t, "downloads of 100 that are counted", s.downloads.Load(), 100)
	})
}

// TestEachHourIsBegunWhileAnswersTakeLong: each use brings a link that was read before the last
// write.
func TestEachHourIsBegunWhileAnswersTakeLong(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, countWait} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{
				takes: time.Millisecond,
				linkOf: func() links.Link {
					return links.Link{File: files.File{Area: blob.Files}, Use: links.Use{Downloads: 1}}
				},
			}
			service := s.service(wait)
			s.use(3*60, time.Minute, func() {
				l, err := service.Find(t.Context(), blob.Files, "hot", "")
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

// TestUsesThatTheTableRefusedAreWrittenLater, though nobody uses their links again.
func TestUsesThatTheTableRefusedAreWrittenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c crowded
		s := c.service()
		for i := range 100 {
			token := fmt.Sprint("link ", i)
			c.jam(token)
			check(t, s.Used(t.Context(), links.Link{
				Token: token,
				Use:   links.Use{Downloads: 1},
			}, links.Used{Whole: true}))
		}
		c.jammed.Store(nil)
		time.Sleep(time.Minute) // each flush may wait for a write that the table refuses late
		expect.Equal(t, "updates: 100 refused ones and their repetitions", c.writes.Load(), 200)
	})
}

// TestALongDownloadLeavesTheSumOfAnEarlierHourAlone ends a download after others have begun
// the next hour's sum.
func TestALongDownloadLeavesTheSumOfAnEarlierHourAlone(t *testing.T) {
	t.Parallel()
	c := newCaller(t, func(s *service.Settings, _ *local.ServiceOptions) { s.LinkBytes = 1 << 40 })
	c.Upload("file=a", "content")
	f := c.Newest("alice")
	ends := func(l links.Link, n int64) (now links.Link) {
		c.must(c.links.Used(c.Context(), l, links.Used{Bytes: n, Whole: true}))
		c.links.Flush(c.Context())
		return c.find(c.links, f)
	}
	long := c.find(c.links, f)
	ends(long, 1000)
	c.Clock.Advance(time.Hour)
	ends(c.find(c.links, f), 100)
	if now := ends(long, 10); now.Given != 1110 || now.GivenBefore != 1000 || now.Hour <= long.Hour {
		t.Errorf("the link gave %d, %d of them before %d", now.Given, now.GivenBefore, now.Hour)
	}
}

func TestAnswersUnderWayCountInTheNextHourToo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := links.New(links.Config{Table: checked{}, Now: func() time.Time { return now }, Bytes: 100})
	check(t, s.MayGive(links.Link{Token: "long"}, 100))
	now = now.Add(time.Hour)
	expect.Fault(t, "beside 100 bytes under way", s.MayGive(links.Link{Token: "long"}, 1), fault.TooMany)
}

// checked is a table that only checks what it gets.
type checked struct{ table.Table }

func (checked) Write(_ context.Context, ops ...table.Op) error { return table.CheckOps(ops...) }

func TestAnswersThatEndAtOnceWriteTheirBytesTogether(t *testing.T) {
	t.Parallel()
	s := links.New(links.Config{Table: checked{}, Now: time.Now, Bytes: 1, CountWait: time.Hour})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2_000 {
				check(t, s.Used(t.Context(), links.Link{Token: "hot"}, links.Used{Bytes: 1}))
			}
		})
	}
	all.Wait()
}
