package files_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/table"
)

// TestALongDownloadLeavesTheSumOfAnEarlierHourAlone ends a download after others have begun
// the next hour's sum.
func TestALongDownloadLeavesTheSumOfAnEarlierHourAlone(t *testing.T) {
	t.Parallel()
	c := callerOf(apitest.New(t, func(s *api.Settings, _ *local.ServiceOptions) { s.LinkBytes = 1 << 40 }))
	c.Put(c.bearer, "file=a", "content")
	service := file.Service(c.Data.Ports)
	read := func() files.Link {
		l, err := service.ByToken(c.Context(), blob.Files, service.Token(c.newest()))
		c.must(err)
		return l
	}
	ends := func(l files.Link, n, sum int64) (now files.Link) {
		service.Gave(l, 0, n)
		_, err := service.CountDownload(c.Context(), l, "")
		c.must(err)
		for end := time.Now().Add(10 * time.Second); now.Given < sum && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			now = read()
		}
		return now
	}
	long := read()
	ends(read(), 1000, 1000)
	c.Clock.Advance(time.Hour)
	ends(read(), 100, 1100)
	if now := ends(long, 10, 1110); now.Given != 1110 || now.GivenBefore != 1000 || now.Hour <= long.Hour {
		t.Errorf("the link gave %d, %d of them before %d", now.Given, now.GivenBefore, now.Hour)
	}
}

// checked is a table that only checks what it gets.
type checked struct{ table.Table }

func (checked) Write(_ context.Context, ops ...table.Op) error { return table.CheckOps(ops...) }

func TestAnswersThatEndAtOnceWriteTheirBytesTogether(t *testing.T) {
	t.Parallel()
	s := files.New(files.Config{Ports: auth.Ports{Table: checked{}, Now: time.Now}, LinkBytes: 1})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20_000 {
				s.Gave(files.Link{Token: "hot"}, 0, 1)
				if err := s.Settle(t.Context(), files.Link{Token: "hot"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
