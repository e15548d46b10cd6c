package links_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/local"
	"ferry/shared/fault"
	"ferry/shared/links"
	"ferry/shared/table"
)

// TestALongDownloadLeavesTheSumOfAnEarlierHourAlone ends a download after others have begun
// the next hour's sum.
func TestALongDownloadLeavesTheSumOfAnEarlierHourAlone(t *testing.T) {
	t.Parallel()
	c := newCaller(t, func(s *api.Settings, _ *local.ServiceOptions) { s.LinkBytes = 1 << 40 })
	c.Upload("file=a", "content")
	f := c.newest()
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
	s := links.New(links.Config{Ports: auth.Ports{Table: checked{}, Now: func() time.Time { return now }}, Bytes: 100})
	check(t, s.MayGive(links.Link{Token: "long"}, 100))
	now = now.Add(time.Hour)
	if err := s.MayGive(links.Link{Token: "long"}, 1); !fault.Is(err, fault.TooMany) {
		t.Errorf("beside 100 bytes under way: %v", err)
	}
}

// checked is a table that only checks what it gets.
type checked struct{ table.Table }

func (checked) Write(_ context.Context, ops ...table.Op) error { return table.CheckOps(ops...) }

func TestAnswersThatEndAtOnceWriteTheirBytesTogether(t *testing.T) {
	t.Parallel()
	s := links.New(links.Config{Ports: auth.Ports{Table: checked{}, Now: time.Now}, Bytes: 1, CountWait: time.Hour})
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
