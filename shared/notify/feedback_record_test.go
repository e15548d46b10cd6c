package notify_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/table"
)

func recordAll(t *testing.T, p *machine, all ...notify.Feedback) {
	t.Helper()
	for _, f := range all {
		must(t, notify.Record(t.Context(), p.table, p.clock.now(), f))
	}
}

func (p *machine) suppressed(t *testing.T, address string) notify.SuppressReason {
	t.Helper()
	e, _, err := notify.Suppressed(t.Context(), p.table, address)
	must(t, err)
	return e.Refused
}

func TestFeedbackMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	delivered := notify.Feedback{Kind: notify.Delivered}
	bounced := notify.Feedback{Kind: notify.Bounced, Detail: "smtp; 550 5.1.1 <ann@example.com> unknown"}
	complained := notify.Feedback{Kind: notify.Complained}
	lost := notify.Feedback{Kind: notify.Undelivered, Detail: "phone is off"}
	const bounce = "bounced: smtp; 550 5.1.1 <a***@example.com> unknown"
	tests := []struct {
		name       string
		feedback   []notify.Feedback
		state      notify.State
		delivered  bool
		lastError  string
		suppressed notify.SuppressReason
	}{
		{"a delivery", []notify.Feedback{delivered}, notify.Sent, true, "", ""},
		{"a delivery reported twice", []notify.Feedback{delivered, delivered}, notify.Sent, true, "", ""},
		{"a bounce", []notify.Feedback{bounced}, notify.Failed, false, bounce, notify.AddressBounced},
		{"a bounce reported twice", []notify.Feedback{bounced, bounced}, notify.Failed, false, bounce, notify.AddressBounced},
		{"a bounce after a delivery", []notify.Feedback{delivered, bounced}, notify.Failed, true, bounce, notify.AddressBounced},
		{"a delivery after a bounce", []notify.Feedback{bounced, delivered}, notify.Failed, false, bounce, notify.AddressBounced},
		{"a complaint", []notify.Feedback{delivered, complained}, notify.Failed, true, "complained", notify.AddressComplained},
		{"a complaint after a bounce", []notify.Feedback{bounced, complained}, notify.Failed, false, bounce, notify.AddressBounced},
		{"a message that was lost", []notify.Feedback{lost}, notify.Failed, false, "not delivered: phone is off", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, n := withLink(t)
			p.pass(t, p.sender(t, nil))
			for _, f := range tt.feedback {
				p.clock.advance(time.Minute)
				f.ID = n.ID
				recordAll(t, p, f)
			}
			got := p.state(t, n.ID)
			if got.State() != tt.state || (got.Delivered != 0) != tt.delivered || got.LastError != tt.lastError || (got.FailedAt != 0) != (tt.state == notify.Failed) {
				t.Errorf("got %+v", got)
			}
			if tt.delivered && got.Delivered != start().Add(time.Minute).UnixMilli() {
				t.Errorf("delivered at %d", got.Delivered)
			}
			if reason := p.suppressed(t, "ann@example.com"); reason != tt.suppressed {
				t.Errorf("suppressed: %q", reason)
			}
		})
	}
}

func TestFeedbackBeforeTheNoticeHasEndedIsRefusedForNow(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
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

func TestFeedbackOnAFailedNoticeChangesNothing(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	p.pass(t, p.sender(t, &flaky{fail: notify.ErrPermanent}))
	want := p.state(t, n.ID)
	recordAll(t, p, notify.Feedback{ID: n.ID, Kind: notify.Delivered}, notify.Feedback{ID: n.ID, Kind: notify.Bounced})
	if got := p.state(t, n.ID); got != want || got.State() != notify.Failed {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSettledOperationsAreWrittenOnceForABounce(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	p.pass(t, p.sender(t, nil))
	count := table.Key{PK: "witness", SK: "1"}
	also := func(n notify.Notice, s notify.State) []table.Op {
		if s != notify.Failed || n.State() != s || !strings.HasPrefix(n.LastError, "bounced") {
			t.Errorf("called with %s, %+v", s, n)
		}
		return []table.Op{table.Update(count).Add("times", 1)}
	}
	for _, kind := range []notify.FeedbackKind{notify.Delivered, notify.Bounced, notify.Bounced, notify.Complained} {
		must(t, notify.Record(t.Context(), p.table, start(), notify.Feedback{ID: n.ID, Kind: kind}, also))
	}
	var got struct {
		Times int64 `json:"times"`
	}
	if err := p.table.Get(t.Context(), count, &got); err != nil || got.Times != 1 {
		t.Errorf("%d times, %v", got.Times, err)
	}
}

func TestLongDetailIsCut(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	p.pass(t, p.sender(t, nil))
	recordAll(t, p, notify.Feedback{ID: n.ID, Kind: notify.Bounced, Detail: strings.Repeat("so ", 5000) + "\r\n"})
	if got := p.state(t, n.ID).LastError; len(got) > 320 || !strings.HasPrefix(got, "bounced: so so") {
		t.Errorf("%d bytes: %s", len(got), fmt.Sprintf("%.40q", got))
	}
}
