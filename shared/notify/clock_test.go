package notify_test

import (
	"errors"
	"testing"
	"time"
)

// TestMessagesFromAClockThatWasAheadAreSent puts messages in the outbox a year ahead, and tries some of them in vain.
func TestMessagesFromAClockThatWasAheadAreSent(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for what, tried := range map[string]bool{"never tried": false, "tried once": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p, hook := newMachine(t), receive(t)
			p.clock.advance(year)
			n := p.put(t, p.linkNotice(1))
			p.happen(t, 1)
			events := p.hookSender(t, p.table, hook.URL)
			hook.status.Store(503)
			must(t, events.Spread(t.Context()))
			if tried {
				p.pass(t, p.sender(t, &flaky{fail: errors.New("down")}))
				p.pass(t, events)
			}
			p.clock.advance(-year)
			hook.status.Store(204)
			if sent, _ := p.pass(t, p.sender(t, nil)); sent != 1 || len(p.received(t)) != 1 {
				t.Errorf("%d notices were sent; the outbox has %+v", sent, n)
			}
			if sent, _ := p.pass(t, events); sent != 1 {
				t.Errorf("%d events were sent", sent)
			}
		})
	}
}

// TestMessageFromAClockThatWasAheadIsGivenUp fails each try.
func TestMessageFromAClockThatWasAheadIsGivenUp(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	p := newMachine(t)
	p.clock.advance(year)
	p.put(t, p.linkNotice(1))
	p.clock.advance(-year)
	for range 12 {
		p.pass(t, p.sender(t, &flaky{fail: errors.New("down")}))
		p.clock.advance(time.Hour)
	}
	if failed := p.failed(t); len(failed) != 1 || p.waiting(t) != 0 {
		t.Errorf("after 12 tries %d notices are given up and %d wait", len(failed), p.waiting(t))
	}
}
