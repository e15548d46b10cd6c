package notify_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

func TestHungServerDelaysNeitherShutdownNorTextMessages(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{Silent: true})
	mailNotice := p.put(t, p.linkNotice(1))
	textNotice := p.put(t, p.textNotice())
	s := p.sender(t, smtpSender(t, srv.Address))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var passing sync.WaitGroup
	passing.Go(func() { s.SendDue(ctx) })
	until(t, func() bool { _, there := p.stored(t, textNotice); return !there })
	until(t, func() bool { n, _ := p.stored(t, mailNotice); return n.Tries == 1 })
	if len(p.received(t)) != 1 {
		t.Error("the text message did not arrive")
	}
	cancel()
	passing.Wait()
	if strings.Contains(p.log.String(), tableFailed) {
		t.Error(p.log)
	}
	if n, there := p.stored(t, mailNotice); !there || n.LastError == "" || n.NotBefore >= start().Add(notify.Lease).UnixMilli() {
		t.Errorf("the mail's notice: %+v, %v", n, there)
	}
}

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

// running runs a sender until stop is called.
func running(t *testing.T, s *notify.Sender) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func TestRunSendsNewNoticesAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.sender(t, nil)
	before := p.put(t, p.linkNotice(1)) // from before a restart
	stop := running(t, s)
	until(t, func() bool { _, there := p.stored(t, before); return !there })
	after := p.put(t, p.linkNotice(2))
	for range 10 {
		s.Wake() // never blocks
	}
	until(t, func() bool { _, there := p.stored(t, after); return !there })
	stop()
	if got := p.received(t); len(got) != 2 {
		t.Errorf("%d messages arrived", len(got))
	}
}

func TestRunLooksAgainWhenTheNextNoticeIsDue(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	p.clock.t = time.Now() // so that Run's pauses and the clock agree
	n := p.put(t, p.linkNotice(1))
	soon := time.Now().Add(300 * time.Millisecond).UnixMilli()
	must(t, p.table.Write(t.Context(), table.Update(n.Key()).Set("notBefore", soon)))
	s := p.sender(t, nil)
	s.Now = time.Now
	stop := running(t, s)
	until(t, func() bool { _, there := p.stored(t, n); return !there })
	stop()
}

// impatient is a sender that waits only 20 ms.
type impatient struct{ mail.Sender }

func (s impatient) Send(ctx context.Context, m mail.Message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	return s.Sender.Send(ctx, m)
}

// late is a sender whose connection times out before its context does.
type late struct{ mail.Sender }

func (late) Send(context.Context, mail.Message) (string, error) {
	time.Sleep(20 * time.Millisecond)
	return "", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
}

func TestLaneWaitsForAHungServerOnlyOnce(t *testing.T) {
	t.Parallel()
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{Silent: true})
	for name, m := range map[string]mail.Sender{
		"a context that ends": impatient{smtpSender(t, srv.Address)}, "a connection that times out": late{},
	} {
		p := newMachine(t)
		const total = 4 * notify.Parallel
		all := make([]notify.Notice, total)
		for i := range all {
			all[i] = p.put(t, p.linkNotice(int64(i+1)))
		}
		sent, next := p.pass(t, p.sender(t, m))
		tried := 0
		for _, n := range all {
			if now, _ := p.stored(t, n); now.Tries > 0 {
				tried++
			}
		}
		if sent != 0 || tried == 0 || tried > notify.Parallel || !next.Equal(start()) || p.waiting(t) != total {
			t.Errorf("%s: %d sent, %d tried, next %v: %s", name, sent, tried, next, p.log)
		}
	}
}

// stuck is a sender of mails. It holds those to addresses that begin with "stuck"
// until release is closed.
type stuck struct {
	mail.Sender
	release chan struct{}
}

func (s stuck) Send(ctx context.Context, m mail.Message) (string, error) {
	if strings.HasPrefix(m.To, "stuck") {
		select {
		case <-s.release:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return s.Sender.Send(ctx, m)
}

func TestSlowDeliveryDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stuck int // mails
		then  notify.Channel
	}{
		"a mail behind one that takes long":              {1, notify.Mail},
		"a text message behind one mail":                 {1, notify.SMS},
		"a text message while no mail leaves at all":     {notify.Parallel, notify.SMS},
		"a text message while mails wait for the others": {3 * notify.Parallel, notify.SMS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			var slow []notify.Notice
			for i := range tt.stuck {
				n := p.linkNotice(int64(i + 1))
				n.To = "stuck@example.com"
				slow = append(slow, p.put(t, n))
				p.clock.advance(time.Millisecond) // the first is due first
			}
			release := make(chan struct{})
			s := p.sender(t, stuck{p.inbox.Mail(), release})
			stop := running(t, s)
			defer func() { close(release); stop() }()
			until(t, func() bool { n, _ := p.stored(t, slow[0]); return n.Sending })
			quick := p.linkNotice(100)
			if quick.Channel = tt.then; quick.Channel == notify.SMS {
				quick.To = "+393331234567"
			}
			quick = p.put(t, quick)
			s.Wake()
			until(t, func() bool { _, there := p.stored(t, quick); return !there })
			if n, there := p.stored(t, slow[0]); !there || !n.Sending || n.Tries != 1 {
				t.Errorf("the slow delivery was cut off: %+v, %v", n, there)
			}
		})
	}
}

func TestRunRetriesAFailedNoticeWhileOthersAreUnderWay(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	p.clock.t = time.Now() // so that Run's pauses and the clock agree
	slow, failing := p.linkNotice(1), p.linkNotice(2)
	slow.To, failing.To = "stuck@example.com", "failing@example.com"
	slow, failing = p.put(t, slow), p.put(t, failing)
	release := make(chan struct{})
	s := p.sender(t, stuck{&failingOnce{Sender: p.inbox.Mail()}, release})
	s.Now = time.Now
	stop := running(t, s)
	until(t, func() bool { _, there := p.stored(t, failing); return !there })
	close(release)
	until(t, func() bool { _, there := p.stored(t, slow); return !there })
	stop()
	if got := p.received(t); len(got) != 2 {
		t.Errorf("%d messages arrived", len(got))
	}
}

// failingOnce refuses the first message to an address that begins with "failing".
type failingOnce struct {
	mail.Sender
	failed atomic.Bool
}

func (s *failingOnce) Send(ctx context.Context, m mail.Message) (string, error) {
	if strings.HasPrefix(m.To, "failing") && !s.failed.Swap(true) {
		return "", errors.New("not yet")
	}
	return s.Sender.Send(ctx, m)
}
