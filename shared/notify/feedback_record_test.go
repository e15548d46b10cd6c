package notify_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ferry/shared/notify"
)

func recordAll(t *testing.T, p *machine, all ...notify.Feedback) {
	t.Helper()
	for _, f := range all {
		must(t, notify.Record(t.Context(), p.table, p.clock.now(), f))
	}
}

func TestFeedbackBeforeTheNoticeHasEndedIsRefusedForNow(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(t, p.linkNotice(1))
	f := notify.Feedback{ID: n.ID, Kind: notify.Bounced}
	for range 2 {
		if err := notify.Record(t.Context(), p.table, start(), f); !errors.Is(err, notify.ErrInOutbox) {
			t.Fatalf("got %v", err)
		}
	}
	if p.suppressed(t, n.To) != "" {
		t.Error("the address is suppressed")
	}
	p.pass(t, p.sender(t, nil))
	recordAll(t, p, f)
	if got := p.state(t, n.ID); got.State() != notify.Failed || p.suppressed(t, n.To) != notify.AddressBounced {
		t.Errorf("got %+v", got)
	}
}

func TestFeedbackOnAForgottenNoticeOnlySuppressesTheAddress(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	pin := p.put(t, p.pinNotice())
	p.pass(t, p.sender(t, nil))
	recordAll(t, p,
		notify.Feedback{ID: pin.ID, Kind: notify.Delivered},
		notify.Feedback{ID: pin.ID, Kind: notify.Bounced, To: "Demo@example.net"},
		notify.Feedback{ID: "long-ago", Kind: notify.Complained, To: "eve@example.net"},
		notify.Feedback{ID: "long-ago-too", Kind: notify.Bounced},
		notify.Feedback{ID: "a-number", Kind: notify.Bounced, To: "+393331234567"},
	)
	for address, want := range map[string]notify.SuppressReason{
		"demo@example.net": notify.AddressBounced, "eve@example.net": notify.AddressComplained, "+393331234567": "",
	} {
		if got := p.suppressed(t, address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	if got := p.state(t, pin.ID); got.ID != "" {
		t.Errorf("the PIN's notice is back: %+v", got)
	}
}

func TestLongDetailIsCut(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(t, p.linkNotice(1))
	p.pass(t, p.sender(t, nil))
	recordAll(t, p, notify.Feedback{ID: n.ID, Kind: notify.Bounced, Detail: strings.Repeat("so ", 5000) + "\r\n"})
	if got := p.state(t, n.ID).LastError; len(got) > 320 || !strings.HasPrefix(got, "bounced: so so") {
		t.Errorf("%d bytes: %s", len(got), fmt.Sprintf("%.40q", got))
	}
}
