package notify_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// slow takes a code at once, and any other mail only when a code was taken.
type slow struct {
	code    chan struct{}
	blocked atomic.Int64
	once    sync.Once
}

func (s *slow) Send(ctx context.Context, m mail.Message) (string, error) {
	if m.To == "demo@example.net" {
		s.once.Do(func() { close(s.code) })
		return "", nil
	}
	s.blocked.Add(1)
	select {
	case <-s.code:
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func TestACodeOvertakesAllMailsThatWait(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	for some := range slices.Chunk(make([]table.Op, 3000), table.MaxOps) {
		for i := range some {
			p.made++
			n := p.receiptNotice(1)
			n.To = "ann@example.com"
			some[i] = n.Op(p.clock.now(), fmt.Sprintf("%06d", p.made))
		}
		must(t, p.table.Write(t.Context(), some...))
	}
	server := &slow{code: make(chan struct{})}
	s := p.sender(t, server)
	stop := running(t, s)
	until(t, func() bool { return server.blocked.Load() == notify.Parallel })
	p.clock.advance(time.Second)
	code := p.put(t, p.pinNotice())
	s.Wake()
	until(t, func() bool { _, there := p.stored(t, code); return !there })
	select {
	case <-server.code:
	default:
		t.Error("the code was not sent")
	}
	stop()
}
