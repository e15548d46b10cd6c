package notices_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/notices"
	"ferry/shared/suppressed"
	"ferry/shared/table"
)

func record(t *testing.T, p *place, all ...notices.Feedback) {
	t.Helper()
	for _, f := range all {
		if err := notices.Record(t.Context(), p.table, p.clock.now(), f); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *place) suppressed(t *testing.T, address string) suppressed.Reason {
	t.Helper()
	e, _, err := suppressed.Get(t.Context(), p.table, address)
	if err != nil {
		t.Fatal(err)
	}
	return e.Refused
}

func TestFeedbackInAnyOrderEndsAlike(t *testing.T) {
	t.Parallel()
	delivered := notices.Feedback{Kind: notices.Delivered}
	bounced := notices.Feedback{Kind: notices.Bounced, Detail: "smtp; 550 5.1.1 <ann@example.com> unknown"}
	complained := notices.Feedback{Kind: notices.Complained}
	lost := notices.Feedback{Kind: notices.Undelivered, Detail: "phone is off"}
	const bounce = "bounced: smtp; 550 5.1.1 <a***@example.com> unknown"
	tests := []struct {
		name       string
		feedback   []notices.Feedback
		state      notices.State
		delivered  bool
		lastError  string
		suppressed suppressed.Reason
	}{
		{"a delivery", []notices.Feedback{delivered}, notices.Sent, true, "", ""},
		{"a delivery told twice", []notices.Feedback{delivered, delivered}, notices.Sent, true, "", ""},
		{"a bounce", []notices.Feedback{bounced}, notices.Failed, false, bounce, suppressed.Bounced},
		{"a bounce told twice", []notices.Feedback{bounced, bounced}, notices.Failed, false, bounce, suppressed.Bounced},
		{"a bounce after a delivery", []notices.Feedback{delivered, bounced}, notices.Failed, true, bounce, suppressed.Bounced},
		{"a delivery after a bounce", []notices.Feedback{bounced, delivered}, notices.Failed, false, bounce, suppressed.Bounced},
		{"a complaint", []notices.Feedback{delivered, complained}, notices.Failed, true, "complained", suppressed.Complained},
		{"a complaint after a bounce", []notices.Feedback{bounced, complained}, notices.Failed, false, bounce, suppressed.Bounced},
		{"a message that was lost", []notices.Feedback{lost}, notices.Failed, false, "not delivered: phone is off", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			n := p.put(t, p.linkNotice(1))
			pass(t, p.sender(t, nil))
			for _, f := range tt.feedback {
				p.clock.advance(time.Minute)
				f.ID = n.ID
				record(t, p, f)
			}
			got := p.state(t, n.ID)
			if got.State() != tt.state || (got.Delivered != 0) != tt.delivered || got.LastError != tt.lastError || (got.FailedAt != 0) != (tt.state == notices.Failed) {
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

func TestFeedbackThatComesBeforeTheMarkIsToComeAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.put(t, p.linkNotice(1))
	f := notices.Feedback{ID: n.ID, Kind: notices.Bounced}
	for range 2 {
		if err := notices.Record(t.Context(), p.table, start(), f); !errors.Is(err, notices.ErrUnsettled) {
			t.Fatalf("got %v", err)
		}
	}
	if p.suppressed(t, n.To) != "" {
		t.Error("the address is suppressed")
	}
	pass(t, p.sender(t, nil))
	record(t, p, f)
	if got := p.state(t, n.ID); got.State() != notices.Failed || p.suppressed(t, n.To) != suppressed.Bounced {
		t.Errorf("got %+v", got)
	}
}

func TestFeedbackOnWhatIsNotKnownAnyMoreSuppressesTheAddressAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pin := p.put(t, p.pinNotice())
	pass(t, p.sender(t, nil))
	record(t, p,
		notices.Feedback{ID: pin.ID, Kind: notices.Delivered},
		notices.Feedback{ID: pin.ID, Kind: notices.Bounced, To: "Demo@example.net"},
		notices.Feedback{ID: "long-ago", Kind: notices.Complained, To: "eve@example.net"},
		notices.Feedback{ID: "long-ago-too", Kind: notices.Bounced},
		notices.Feedback{ID: "a-number", Kind: notices.Bounced, To: "+393331234567"},
	)
	for address, want := range map[string]suppressed.Reason{
		"demo@example.net": suppressed.Bounced, "eve@example.net": suppressed.Complained, "+393331234567": "",
	} {
		if got := p.suppressed(t, address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	if got := p.state(t, pin.ID); got.ID != "" {
		t.Errorf("the PIN's notice is back: %+v", got)
	}
}

func TestFeedbackOnWhatHadFailedBeforeChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.put(t, p.linkNotice(1))
	pass(t, p.sender(t, &flaky{fail: notices.ErrPermanent}))
	want := p.state(t, n.ID)
	record(t, p, notices.Feedback{ID: n.ID, Kind: notices.Delivered}, notices.Feedback{ID: n.ID, Kind: notices.Bounced})
	if got := p.state(t, n.ID); got != want || got.State() != notices.Failed {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestABounceBringsTheOperationsOfAFailureOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.put(t, p.linkNotice(1))
	pass(t, p.sender(t, nil))
	count := table.Key{PK: "witness", SK: "1"}
	also := func(n notices.Notice, s notices.State) []table.Op {
		if s != notices.Failed || n.State() != s || !strings.HasPrefix(n.LastError, "bounced") {
			t.Errorf("called with %s, %+v", s, n)
		}
		return []table.Op{table.Update(count).Add("times", 1)}
	}
	for _, kind := range []notices.FeedbackKind{notices.Delivered, notices.Bounced, notices.Bounced, notices.Complained} {
		if err := notices.Record(t.Context(), p.table, start(), notices.Feedback{ID: n.ID, Kind: kind}, also); err != nil {
			t.Fatal(err)
		}
	}
	var got struct {
		Times int64 `json:"times"`
	}
	if err := p.table.Get(t.Context(), count, &got); err != nil || got.Times != 1 {
		t.Errorf("%d times, %v", got.Times, err)
	}
}

func TestAnEndlessDetailIsCut(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.put(t, p.linkNotice(1))
	pass(t, p.sender(t, nil))
	record(t, p, notices.Feedback{ID: n.ID, Kind: notices.Bounced, Detail: strings.Repeat("so ", 5000) + "\r\n"})
	if got := p.state(t, n.ID).LastError; len(got) > 320 || !strings.HasPrefix(got, "bounced: so so") {
		t.Errorf("%d bytes: %s", len(got), fmt.Sprintf("%.40q", got))
	}
}
