package notify_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// state returns what is known of one notice.
func (p *machine) state(t *testing.T, id string) notify.Notice {
	t.Helper()
	all, err := notify.States(t.Context(), p.table, []string{id})
	must(t, err)
	if len(all) == 0 {
		return notify.Notice{}
	}
	return all[0]
}

func TestStateFollowsTheNotice(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	if got := p.state(t, n.ID); got.State() != notify.Queued || got.Tries != 0 {
		t.Errorf("at first: %+v", got)
	}
	s := p.sender(t, &flaky{fail: errors.New("not now")})
	claim(t, s, n)
	if got := p.state(t, n.ID); got.State() != notify.Sending || got.Tries != 1 {
		t.Errorf("claimed by a sender: %+v", got)
	}
	p.clock.advance(notify.Lease)
	p.pass(t, s)
	if got := p.state(t, n.ID); got.State() != notify.Queued || got.Tries != 2 || got.LastError != "not now" {
		t.Errorf("after a failed try: %+v", got)
	}
	p.clock.advance(time.Hour)
	p.pass(t, p.sender(t, nil))
	got := p.state(t, n.ID)
	if got.State() != notify.Sent || got.Tries != 3 || got.Provider != n.ID || got.SentAt != p.clock.now().UnixMilli() || got.LastError != "not now" {
		t.Errorf("in the end: %+v", got)
	}
}

func TestFailedNoticeIsShownAsFailed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, p *machine, n notify.Notice)
		says   string
	}{
		{"when the address is suppressed", func(t *testing.T, p *machine, n notify.Notice) {
			must(t, p.table.Write(t.Context(), notify.Suppress(n.To, notify.AddressBounced, "", p.clock.now())))
		}, "the notice cannot be delivered: the address takes no mail from here: it bounced"},
		{"when the file was removed", func(t *testing.T, p *machine, n notify.Notice) {
			must(t, p.table.Write(t.Context(), table.Delete(files.Key(n.Area, n.Owner, n.File))))
		}, "the notice is obsolete: the file was removed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, n := withLink(t)
			tt.change(t, p, n)
			p.pass(t, p.sender(t, nil))
			got := p.state(t, n.ID)
			if got.State() != notify.Failed || got.LastError != tt.says || got.FailedAt != start().UnixMilli() || len(p.received(t)) != 0 {
				t.Errorf("got %+v, %d messages", got, len(p.received(t)))
			}
		})
	}
}

// TestSuppressedAddressGetsOnlyPINs checks that the owner's wish does not stop PINs. A bounce
// or a complaint does.
func TestSuppressedAddressGetsOnlyPINs(t *testing.T) {
	t.Parallel()
	bounced, complained := add(notify.AddressBounced, 0), add(notify.AddressComplained, 0)
	stopped := add(notify.AddressStopped, 0)
	tests := []struct {
		name      string
		steps     []step
		link, pin bool
	}{
		{"not suppressed", nil, true, true},
		{"bounced", []step{bounced}, false, false},
		{"complained", []step{complained}, false, false},
		{"stopped", []step{stopped}, false, true},
		{"stopped, then bounced", []step{stopped, bounced}, false, false},
		{"bounced, then stopped", []step{bounced, stopped}, false, false},
		{"stopped, bounced, allowed", []step{stopped, bounced, allow}, false, true},
		{"bounced, stopped, allowed", []step{bounced, stopped, allow}, false, true},
		{"stopped, bounced, undone", []step{stopped, bounced, undo}, false, false},
		{"bounced, stopped, undone", []step{bounced, stopped, undo}, false, false},
		{"bounced, undone", []step{bounced, undo}, false, false},
		{"stopped, allowed", []step{stopped, allow}, false, true},
		{"bounced, allowed", []step{bounced, allow}, true, true},
		{"stopped, undone", []step{stopped, undo}, true, true},
		{"both ended", []step{stopped, complained, undo, allow}, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			all := []notify.Notice{p.put(t, p.linkNotice(1)), p.put(t, p.pinNotice())}
			for _, step := range tt.steps {
				for _, n := range all {
					must(t, step(t.Context(), p.table, n.To))
				}
			}
			p.pass(t, p.sender(t, nil))
			arrived := map[string]bool{}
			for _, m := range p.received(t) {
				arrived[m.To] = true
			}
			if arrived[all[0].To] != tt.link || arrived[all[1].To] != tt.pin {
				t.Errorf("the link arrived: %v, the PIN: %v", arrived[all[0].To], arrived[all[1].To])
			}
		})
	}
}

func TestSuppressionDoesNotStopTextMessages(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(t, p.textNotice())
	must(t, p.table.Write(t.Context(), notify.Suppress(n.To, notify.AddressBounced, "", start())))
	if sent, _ := p.pass(t, p.sender(t, nil)); sent != 1 {
		t.Errorf("%d sent", sent)
	}
}

func TestSentPINLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.put(t, p.pinNotice())
	p.pass(t, p.sender(t, nil))
	if got := p.state(t, n.ID); len(p.received(t)) != 1 || got.ID != "" {
		t.Errorf("got %+v", got)
	}
}

func TestStatesKeepTheOrderAndLeaveOutUnknownNotices(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	var ids, want []string
	for i := range 70 { // more than one call takes
		ids = append(ids, fmt.Sprintf("nobody-%d", i))
		if i%2 == 0 {
			n := p.put(t, p.linkNotice(int64(i+1)))
			ids, want = append(ids, n.ID), append(want, n.ID)
		}
	}
	all, err := notify.States(t.Context(), p.table, ids)
	must(t, err)
	var got []string
	for _, n := range all {
		got = append(got, n.ID)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// torn is a table whose GetMany reads the outbox last, and calls between before that.
type torn struct {
	counted
	between func()
}

func (t *torn) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	before, err := t.counted.GetMany(ctx, keys...)
	if t.between == nil || err != nil {
		return before, err
	}
	t.between()
	t.between = nil
	after, err := t.Table.GetMany(ctx, keys...)
	for i, key := range keys {
		if strings.HasPrefix(key.PK, "outbox#") {
			before[i] = after[i]
		}
	}
	return before, err
}

func TestNoticeThatMovesDuringALookUpIsFound(t *testing.T) {
	t.Parallel()
	sends := func(t *testing.T, p *machine) { p.pass(t, p.sender(t, nil)) }
	tests := []struct {
		name  string
		moves func(*testing.T, *machine)
		want  notify.State
		calls string
	}{
		{"it is sent", sends, notify.Sent, "get 9, get 3"},
		{"it is given up", func(t *testing.T, p *machine) { p.pass(t, p.sender(t, &flaky{fail: notify.ErrPermanent})) }, notify.Failed, "get 9, get 3"},
		{"it stays", func(*testing.T, *machine) {}, notify.Queued, "get 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			first := p.put(t, p.linkNotice(1))
			sends(t, p)
			moving := p.put(t, p.linkNotice(2))
			last := p.put(t, p.linkNotice(3))
			must(t, p.table.Write(t.Context(), table.Update(last.Key()).Set("notBefore", start().Add(time.Hour).UnixMilli())))
			tab := &torn{counted: counted{Table: p.table}, between: func() { tt.moves(t, p) }}
			all, err := notify.States(t.Context(), tab, []string{first.ID, moving.ID, last.ID})
			if err != nil || len(all) != 3 || all[1].ID != moving.ID || all[1].State() != tt.want {
				t.Errorf("got %+v, %v", all, err)
			}
			if got := strings.Join(tab.calls, ", "); got != tt.calls {
				t.Errorf("it costs %s, want %s", got, tt.calls)
			}
		})
	}
}

func TestBounceOfANoticeThatMovesDuringALookUpIsRecorded(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	tab := &torn{counted: counted{Table: p.table}, between: func() { p.pass(t, p.sender(t, nil)) }}
	must(t, notify.Record(t.Context(), tab, start(), notify.Feedback{ID: n.ID, Kind: notify.Bounced}))
	if got := p.state(t, n.ID); got.State() != notify.Failed {
		t.Errorf("it is %s", got.State())
	}
}

func TestEndedNoticeIsKeptAsLongAsItsFileWithinBounds(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct{ expires, keeps time.Duration }{
		"as the file":                  {10 * day, 10 * day},
		"a file that goes tomorrow":    {day, 3 * day},
		"a file that stays for a year": {365 * day, 90 * day},
		"a file that never expires":    {0, 90 * day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			n := p.linkNotice(1)
			n.Expires = 0
			if tt.expires > 0 {
				n.Expires = start().Add(tt.expires).Unix()
			}
			n = p.put(t, n)
			p.pass(t, p.sender(t, nil))
			for _, at := range []time.Duration{tt.keeps - time.Second, tt.keeps + time.Second} {
				if _, err := p.table.DeleteExpired(t.Context(), start().Add(at)); err != nil {
					t.Fatal(err)
				}
				if got := p.state(t, n.ID).ID != ""; got != (at < tt.keeps) {
					t.Errorf("after %v it is there: %v", at, got)
				}
			}
		})
	}
}

func TestSettledOperationsAreWrittenWhenALinkEnds(t *testing.T) {
	t.Parallel()
	type witness struct {
		State string `json:"state"`
	}
	at := table.Key{PK: "witness", SK: "1"}
	settled := func(n notify.Notice, s notify.State) []table.Op {
		return []table.Op{table.Put(at, witness{string(s) + " " + n.Name + " " + n.LastError})}
	}
	tests := []struct {
		name   string
		notice func(p *machine) notify.Notice
		fail   error
		want   string
	}{
		{"when it was sent", func(p *machine) notify.Notice { return p.linkNotice(1) }, nil, "sent report.pdf "},
		{"when it was given up", func(p *machine) notify.Notice { return p.linkNotice(1) }, notify.ErrPermanent, "failed report.pdf the notice cannot be delivered"},
		{"but not when it is tried again", func(p *machine) notify.Notice { return p.linkNotice(1) }, errors.New("later"), ""},
		{"but not for a PIN", (*machine).pinNotice, nil, ""},
		{"but not for a PIN that fails", (*machine).pinNotice, notify.ErrPermanent, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			p.put(t, tt.notice(p))
			s := p.sender(t, &flaky{fail: tt.fail})
			s.OnEnd = []notify.OnEnd{settled}
			p.pass(t, s)
			var got witness
			err := p.table.Get(t.Context(), at, &got)
			if err != nil && !errors.Is(err, table.ErrNotFound) || got.State != tt.want {
				t.Errorf("got %q, %v", got.State, err)
			}
		})
	}
}

// TestOneChannelIsSentEvenIfTheOtherFails has a number and an address, and one of them is bad.
func TestOneChannelIsSentEvenIfTheOtherFails(t *testing.T) {
	t.Parallel()
	for _, bad := range []notify.Channel{notify.Mail, notify.SMS} {
		t.Run(string(bad)+" fails", func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			letter, text := p.linkNotice(1), p.textNotice()
			switch bad {
			case notify.Mail:
				letter.To = "no address"
			case notify.SMS:
				text.To = "+0"
			}
			both := map[notify.Channel]notify.Notice{notify.Mail: p.put(t, letter), notify.SMS: p.put(t, text)}
			p.pass(t, p.sender(t, nil))
			for channel, n := range both {
				want := notify.Sent
				if channel == bad {
					want = notify.Failed
				}
				if got := p.state(t, n.ID); got.State() != want || (got.LastError != "") != (channel == bad) {
					t.Errorf("%s: %+v", channel, got)
				}
			}
			if got := p.received(t); len(got) != 1 || got[0].Channel == string(bad) {
				t.Errorf("arrived: %+v", got)
			}
		})
	}
}
