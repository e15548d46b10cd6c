package notify_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// until waits until ok is true.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for !ok() {
		if t.Context().Err() != nil {
			t.Fatal("the test ended")
		}
		time.Sleep(time.Millisecond)
	}
}

// untilSent waits until a notice has left the outbox.
func (p *machine) untilSent(n notify.Notice) {
	p.Helper()
	until(p.T, func() bool { _, there := p.stored(n); return !there })
}

// running runs a sender until stop is called.
func running(t *testing.T, s *notify.Sender) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

// stuck returns a Courier that holds mails to addresses that begin with "stuck" until release is closed.
func stuck(release chan struct{}) notify.Courier {
	return func(ctx context.Context, _ *notify.Sender, n notify.Notice) (string, error) {
		if strings.HasPrefix(n.To, "stuck") {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return "", ctx.Err()
	}
}

// to returns a mail to somebody else.
func (p *machine) to(address string) notify.Notice {
	n := p.linkNotice(1)
	n.To = address
	return n
}

func TestDeliveryThatHangsIsCutOffSoonAfterTheContextEnds(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(p.to("stuck@example.com"))
	begun := make(chan struct{})
	stop := running(t, p.sender(p.table, func(ctx context.Context, s *notify.Sender, n notify.Notice) (string, error) {
		close(begun)
		return stuck(nil)(ctx, s, n)
	}))
	<-begun // a claim that is stored may still be under way, and be cut off
	stop()
	if n, there := p.stored(n); !there ||
		n.LastError == "" ||
		n.NotBefore >= start().Add(notify.Lease).UnixMilli() ||
		strings.Contains(p.log.String(), tableFailed) {
		t.Errorf("the notice: %+v, %v; %s", n, there, p.log)
	}
}

func TestRunSendsEachNoticeWhenItIsDue(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	p.clock.advance(time.Since(start()))                                     // so that Run's pauses and the clock agree
	slow, before := p.put(p.to("stuck@example.com")), p.put(p.linkNotice(1)) // from before a restart
	soon, failing := p.put(p.linkNotice(1)), p.put(p.to("failing@example.com"))
	due := table.Update(soon.Key()).Set("notBefore", time.Now().Add(300*time.Millisecond).UnixMilli())
	must(t, p.table.Write(t.Context(), due))
	release := make(chan struct{})
	var tries atomic.Int64
	s := p.sender(p.table, func(ctx context.Context, s *notify.Sender, n notify.Notice) (string, error) {
		if n.To == failing.To && tries.Add(1) == 1 {
			return "", errDown
		}
		return stuck(release)(ctx, s, n)
	})
	s.Now = time.Now
	stop := running(t, s)
	p.untilSent(before)
	p.untilSent(soon)
	p.untilSent(failing)
	after := p.put(p.linkNotice(2))
	for range 10 {
		s.Wake() // never blocks
	}
	p.untilSent(after)
	close(release)
	p.untilSent(slow)
	stop()
	expect.Equal(t, "tries", tries.Load(), 2)
}

func TestLaneWaitsForAHungServerOnlyOnce(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"a context that ends":         fmt.Errorf("sending: %w", context.DeadlineExceeded),
		"a connection that times out": &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
	} {
		p := newMachine(t)
		const total = 4 * notify.Parallel
		for i := range int64(total) {
			p.put(p.linkNotice(i + 1))
		}
		var tried atomic.Int64
		all := make(chan struct{})
		hangs := func(ctx context.Context, _ *notify.Sender, _ notify.Notice) (string, error) {
			if tried.Add(1) == notify.Parallel {
				close(all)
			}
			select { // as long as all hang
			case <-all:
			case <-ctx.Done():
			}
			return "", err
		}
		sent, next := p.pass(p.sender(p.table, hangs))
		if n := tried.Load(); sent != 0 || n != notify.Parallel || !next.Equal(start()) || p.waiting() != total {
			t.Errorf("%s: %d sent, %d tried, next %v: %s", name, sent, n, next, p.log)
		}
	}
}

func TestSlowDeliveryDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stuck int // mails
		then  func(*machine) notify.Notice
	}{
		"a mail behind one that takes long":              {1, link},
		"a text message while mails wait for the others": {3 * notify.Parallel, text},
		"a code while many mails wait for the others":    {8 * notify.Batch, pin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			var slow []notify.Notice
			for range tt.stuck {
				slow = append(slow, p.put(p.to("stuck@example.com")))
				p.clock.advance(time.Millisecond) // the first is due first
			}
			release := make(chan struct{})
			s := p.sender(p.table, stuck(release))
			stop := running(t, s)
			defer func() { close(release); stop() }()
			until(t, func() bool { n, _ := p.stored(slow[0]); return n.Sending })
			quick := p.put(tt.then(p))
			s.Wake()
			p.untilSent(quick)
			if n, there := p.stored(slow[0]); !there || !n.Sending || n.Tries != 1 {
				t.Errorf("the slow delivery was cut off: %+v, %v", n, there)
			}
		})
	}
}
