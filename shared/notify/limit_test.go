package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
)

// limited counts the tries of a provider.
type limited struct {
	flaky
	tries int
}

func (c *limited) Send(ctx context.Context, m mail.Message) (string, error) {
	c.tries++
	return c.flaky.Send(ctx, m)
}

// maxReceives is how often the stack's queues give out a message before it is a dead letter.
const maxReceives = 200

func refusal(limit error) error {
	return fmt.Errorf("sending mail: %w: %w", limit, errors.New("status 429"))
}

func TestARefusalForTheRateIsNoTry(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	f := &flaky{fail: refusal(mail.ErrRate)}
	s := p.sender(t, f)
	last := time.Duration(0)
	for range 20 {
		again := handle(t, s, n)
		if again <= 0 || again < last || again > time.Hour {
			t.Fatalf("again after %v, and before after %v", again, last)
		}
		last = again
		if got := p.state(t, n.ID); got.State() != notify.Queued || got.LastError != mail.ErrRate.Error() || got.Tried() != 0 {
			t.Fatalf("the notice: %+v", got)
		}
		p.clock.advance(again)
	}
	f.fail = errors.New("down")
	p.clock.advance(handle(t, s, n))
	if got := p.state(t, n.ID); got.LastError != "down" || got.Tried() != 1 {
		t.Fatalf("the notice: %+v", got)
	}
	f.fail = nil
	if again := handle(t, s, n); again != 0 || p.state(t, n.ID).State() != notify.Sent {
		t.Errorf("again after %v", again)
	}
}

// TestACodeIsTriedEveryFewSecondsWhileTheRateIsUsedUp: it is good for minutes, and a rate
// frees at once.
func TestACodeIsTriedEveryFewSecondsWhileTheRateIsUsedUp(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	c := &limited{flaky: flaky{fail: refusal(mail.ErrRate)}}
	s, code := p.sender(t, c), p.put(t, p.pinNotice())
	for again := handle(t, s, code); again > 0; again = handle(t, s, code) {
		if again > 4*time.Second {
			t.Fatalf("after %d tries again after %v", c.tries, again)
		}
		p.clock.advance(again)
	}
	if c.tries < 200 {
		t.Errorf("there were %d tries until it expired", c.tries)
	}
}

func TestWhileAQuotaIsUsedUpOneMailIsTriedAndTheOthersWait(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	c := &limited{flaky: flaky{fail: refusal(mail.ErrQuota)}}
	s := p.sender(t, c)
	var all []notify.Notice
	for i := range int64(50) {
		all = append(all, p.put(t, p.linkNotice(i+1)))
	}
	all = append(all, p.put(t, p.textNotice()))
	var wait time.Duration
	for _, n := range all[:50] {
		wait = handle(t, s, n)
		if got := p.state(t, n.ID); got.State() != notify.Queued || got.LastError != mail.ErrQuota.Error() || got.Tried() != 0 {
			t.Fatalf("the notice: %+v", got)
		}
	}
	if again := handle(t, s, all[50]); again != 0 || c.tries != 1 || wait < 30*time.Minute || wait > time.Hour {
		t.Errorf("%d tries, and the next after %v; the text message again after %v", c.tries, wait, again)
	}
	code := p.put(t, p.pinNotice())
	if again := handle(t, s, code); c.tries != 2 || again <= 0 || again > time.Second {
		t.Errorf("the code was tried %d times, and is again after %v", c.tries-1, again)
	}
	c.fail = nil
	p.clock.advance(time.Second)
	if handle(t, s, code) != 0 || handle(t, s, all[0]) == 0 {
		t.Error("the code waits, or a mail does not")
	}
	p.clock.advance(wait)
	for _, n := range all {
		if again := handle(t, s, n); again != 0 || p.state(t, n.ID).State() != notify.Sent {
			t.Errorf("again after %v: %+v", again, p.state(t, n.ID))
		}
	}
}

func TestANoticeWaitsThreeDaysForAQuotaAndLeavesNoDeadLetter(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(t, p.receiptNotice(1))
	p.clock.advance(30 * 24 * time.Hour) // there was no address to send from
	s := p.sender(t, &flaky{fail: refusal(mail.ErrQuota)})
	receives, waited := p.toTheEnd(t, s, n)
	if waited < 3*24*time.Hour || waited > 3*24*time.Hour+time.Hour || receives > maxReceives/2 {
		t.Errorf("given up after %v, received %d times", waited, receives)
	}
	if got := p.failed(t); len(got) != 1 || !strings.HasPrefix(got[0].LastError, "sending mail: "+mail.ErrQuota.Error()) {
		t.Errorf("the failed notices: %+v", got)
	}
}

func TestAfterAQuotaOtherFailuresHaveAllTheirTries(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	f := &flaky{fail: refusal(mail.ErrQuota)}
	s := p.sender(t, f)
	receives := 0
	for p.clock.now().Sub(start()) < 2*24*time.Hour {
		p.clock.advance(handle(t, s, n))
		receives++
	}
	f.fail = errors.New("down")
	tries, _ := p.toTheEnd(t, s, n)
	if tries != 12 || tries+receives > maxReceives {
		t.Errorf("given up after %d tries, received %d times", tries, tries+receives)
	}
}

// TestAClockThatWasAheadHoldsNoMailUp: the quota seems to free a day from now.
func TestAClockThatWasAheadHoldsNoMailUp(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	f := &flaky{fail: refusal(mail.ErrQuota)}
	s := p.sender(t, f)
	p.clock.advance(24 * time.Hour)
	handle(t, s, p.put(t, p.linkNotice(1)))
	p.clock.advance(-24 * time.Hour)
	f.fail = nil
	n := p.put(t, p.linkNotice(2))
	if again := handle(t, s, n); again != 0 || p.state(t, n.ID).State() != notify.Sent {
		t.Errorf("again after %v: %+v", again, p.state(t, n.ID))
	}
}
