package notify_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/table"
)

// bring makes a notice and brings it into a state.
func (p *machine) bring(t *testing.T, where string) notify.Notice {
	t.Helper()
	n := p.put(t, p.linkNotice(1))
	switch where {
	case "held", "dead":
		claim(t, p.sender(t, nil), n)
		if where == "dead" {
			p.clock.advance(notify.Lease)
		}
	case "postponed":
		p.pass(t, p.sender(t, &flaky{fail: errors.New("down")}))
	case "sent", "bounced":
		p.pass(t, p.sender(t, &flaky{}))
		if where == "bounced" {
			recordAll(t, p, notify.Feedback{ID: n.ID, Kind: notify.Undelivered})
		}
	case "given up":
		p.pass(t, p.sender(t, &flaky{fail: notify.ErrPermanent}))
	case "cancelled":
		must(t, notify.Cancel(t.Context(), p.table, p.clock.now(), n.ID))
	case "unknown":
		n.ID = "nobody"
	}
	return n
}

func TestOperatorRetriesANoticeThatDidNotArrive(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]error{
		"new": nil, "postponed": nil, "dead": nil, "given up": nil, "bounced": nil, "cancelled": nil,
		"held": notify.ErrHeld, "sent": notify.ErrSent, "unknown": notify.ErrUnknown,
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			n := p.bring(t, where)
			before := p.state(t, n.ID)
			if err := notify.Retry(t.Context(), p.table, p.clock.now(), n.ID); !errors.Is(err, want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if want != nil {
				if after := p.state(t, n.ID); after != before {
					t.Errorf("it is now %+v, but was %+v", after, before)
				}
				return
			}
			f := &flaky{}
			if sent, _ := p.pass(t, p.sender(t, f)); sent != 1 || len(f.taken) != 1 || len(p.failed(t)) != 0 {
				t.Errorf("%d sent, %d taken", sent, len(f.taken))
			}
			if got := p.state(t, n.ID); got.State() != notify.Sent || got.FailedAt != 0 || before.State() == notify.Failed && got.LastError != "" || got.Tries != before.Tries+1 {
				t.Errorf("it is now %+v", got)
			}
		})
	}
}

func TestRetryGivesANoticeAnotherDay(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.bring(t, "given up")
	p.clock.advance(notify.GiveUp + time.Hour)
	must(t, notify.Retry(t.Context(), p.table, p.clock.now(), n.ID))
	down := p.sender(t, &flaky{fail: errors.New("down")})
	p.pass(t, down)
	if got := p.state(t, n.ID); got.State() != notify.Queued {
		t.Errorf("after the first try: %+v", got)
	}
	p.clock.advance(notify.GiveUp - 12*time.Hour)
	for range 12 {
		p.clock.advance(time.Hour)
		p.pass(t, down)
	}
	if got := p.state(t, n.ID); got.State() != notify.Failed {
		t.Errorf("after another day: %+v", got)
	}
}

func TestOperatorCancelsAWaitingNotice(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]error{
		"new": nil, "postponed": nil, "dead": nil,
		"held": notify.ErrHeld, "sent": notify.ErrSent, "unknown": notify.ErrUnknown,
		"given up": notify.ErrFailed, "bounced": notify.ErrFailed, "cancelled": notify.ErrFailed,
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			n := p.bring(t, where)
			before := p.state(t, n.ID)
			if err := notify.Cancel(t.Context(), p.table, p.clock.now(), n.ID); !errors.Is(err, want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if want != nil {
				if after := p.state(t, n.ID); after != before {
					t.Errorf("it is now %+v, but was %+v", after, before)
				}
				return
			}
			if got := p.state(t, n.ID); got.State() != notify.Failed || got.LastError != notify.Cancelled || got.FailedAt == 0 {
				t.Errorf("it is now %+v", got)
			}
			f := &flaky{}
			p.clock.advance(time.Hour)
			if p.pass(t, p.sender(t, f)); len(f.taken) != 0 || p.waiting(t) != 0 {
				t.Errorf("%d taken", len(f.taken))
			}
		})
	}
}

func TestCancelWritesTheSettledOperations(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	at := table.Key{PK: "witness", SK: "1"}
	also := func(n notify.Notice, s notify.State) []table.Op {
		return []table.Op{table.Put(at, struct {
			Text string `json:"text"`
		}{string(s) + " " + n.LastError})}
	}
	must(t, notify.Cancel(t.Context(), p.table, start(), p.bring(t, "new").ID, also))
	var got struct {
		Text string `json:"text"`
	}
	if err := p.table.Get(t.Context(), at, &got); err != nil || got.Text != "failed cancelled" {
		t.Errorf("got %q, %v", got.Text, err)
	}
}

func TestCancelledPINLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(t, p.pinNotice())
	must(t, notify.Cancel(t.Context(), p.table, start(), n.ID))
	if got := p.state(t, n.ID); got.ID != "" || p.waiting(t) != 0 {
		t.Errorf("left: %+v", got)
	}
}

// overtaken is a table where a sender acts just before each write of an operator.
type overtaken struct {
	table.Table
	act func()
}

func (o overtaken) Write(ctx context.Context, ops ...table.Op) error {
	o.act()
	return o.Table.Write(ctx, ops...)
}

func TestOperatorNeverOvertakesASender(t *testing.T) {
	t.Parallel()
	operations := map[string]func(context.Context, table.Table, time.Time, string) error{
		"retry": notify.Retry,
		"cancel": func(ctx context.Context, t table.Table, now time.Time, id string) error {
			return notify.Cancel(ctx, t, now, id)
		},
	}
	for name, operate := range operations {
		t.Run("a "+name+" beside a claim", func(t *testing.T) {
			t.Parallel()
			p, n := withLink(t)
			f := &flaky{}
			beside := overtaken{p.table, func() {
				if _, err := p.sender(t, nil).Claim(t.Context(), n); err != nil {
					t.Error(err)
				}
			}}
			if err := operate(t.Context(), beside, start(), n.ID); !errors.Is(err, notify.ErrHeld) {
				t.Errorf("got %v", err)
			}
			if p.pass(t, p.sender(t, f)); len(f.taken) != 0 || p.state(t, n.ID).State() != notify.Sending {
				t.Errorf("%d taken; it is %s", len(f.taken), p.state(t, n.ID).State())
			}
		})
	}
	for _, where := range []string{"given up", "cancelled"} {
		t.Run("a retry of what was "+where+" beside another that was sent", func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			n := p.bring(t, where)
			f := &flaky{}
			beside := overtaken{p.table, func() {
				if err := notify.Retry(t.Context(), p.table, p.clock.now(), n.ID); err != nil {
					t.Error(err)
				}
				p.pass(t, p.sender(t, f))
			}}
			if err := notify.Retry(t.Context(), beside, p.clock.now(), n.ID); !errors.Is(err, notify.ErrHeld) {
				t.Errorf("got %v", err)
			}
			if p.pass(t, p.sender(t, f)); len(f.taken) != 1 || p.state(t, n.ID).State() != notify.Sent {
				t.Errorf("%d taken; it is %s", len(f.taken), p.state(t, n.ID).State())
			}
		})
	}
}

func TestWaitingAndGivenUpNoticesAreListed(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.sender(t, &flaky{fail: notify.ErrPermanent})
	var gone []string
	for i := range int64(3) {
		n := p.put(t, p.linkNotice(i+1))
		p.pass(t, s)
		gone = append([]string{n.ID}, gone...) // newest first
	}
	want := map[string]bool{"0000000000000-poison": true}
	for i := range int64(20) {
		want[p.put(t, p.linkNotice(i+10)).ID] = true
	}
	poison := table.Key{PK: notify.Partitions(notify.OutboxPrefix)[0], SK: "0000000000000-poison"}
	must(t, p.table.Write(t.Context(), table.Put(poison, odd{V: 1, Tries: "many"})))
	got := map[string]bool{}
	for n, err := range notify.Waiting(t.Context(), p.table) {
		must(t, err)
		got[n.ID] = true
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("waiting: %v", got)
	}
	var failed []string
	for _, n := range p.failed(t) {
		failed = append(failed, n.ID)
	}
	if !reflect.DeepEqual(failed, gone) {
		t.Errorf("given up: %v, want %v", failed, gone)
	}
}
