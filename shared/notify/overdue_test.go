package notify_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/table"
)

func TestNoticeThatIsTooLateIsEnded(t *testing.T) {
	failed := func(says string) want { return want{state: notify.Failed, says: says} }
	receiptOf := func(p *machine) notify.Notice {
		n := p.receiptNotice(1)
		n.Expires = start().Add(day).Unix()
		return n
	}
	tell(t, []story{
		{"a link that works", lasting(day), steps{after(2 * time.Hour), reminded(1, 0)}, want{state: notify.Queued}},
		{"a link that has just expired", lasting(day), steps{after(day), reminded(0, 1), reminded(0, 0)}, failed(over)},
		{"a receipt that has expired", receiptOf, steps{after(2 * day), reminded(0, 1)}, failed(over)},
		{"a PIN that has expired", pin, steps{after(2 * time.Hour), reminded(0, 1)}, want{}},
		{"a link that never expires, after weeks", lasting(0), steps{after(89 * day), reminded(1, 0)}, want{state: notify.Queued}},
		{"a link that never expires, after months", lasting(0), steps{after(90 * day), reminded(0, 1)}, failed("the notice is obsolete: it has waited too long")},
		{"one that an operator retried since", lasting(0), steps{after(91 * day), retried(nil), after(time.Hour), reminded(1, 0)}, want{state: notify.Queued}},
		{"one that a sender claims meanwhile", lasting(day), steps{after(2 * day), beside(1, claimedBeside, reminded(0, 1)), reminded(0, 0)}, want{state: notify.Sending, tries: 1}},
	})
}

// claimedBeside is a claim of a sender that still thinks that the notice is good.
func claimedBeside(r *run) {
	op := table.Update(r.notice.Key()).Add("tries", 1).Set("sending", true).Set("notBefore", r.clock.now().Add(notify.Lease).UnixMilli())
	must(r.T, r.table.Write(r.Context(), op))
}

func TestSendersArePointedAtNoticesDueForAnHour(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	var want []notify.TopicMessage
	for i := range 25 {
		n := p.linkNotice(1)
		if i == 7 {
			n = text(p)
		}
		if i == 23 {
			p.clock.advance(time.Minute) // the others are not late yet
		}
		if n = p.put(t, n); i < 23 {
			want = append(want, notify.Pointer(n.Key(), string(n.Channel)))
		}
	}
	held := p.put(t, p.linkNotice(2))
	must(t, p.table.Write(t.Context(), table.Update(held.Key()).Set("notBefore", start().Add(2*time.Hour).UnixMilli()), table.Put(poison(), odd{V: 1})))
	want = append(want, notify.Pointer(poison(), ""))
	var topics relayed
	now := start().Add(time.Hour)
	r, err := notify.Remind(t.Context(), p.table, &topics, now)
	got := topics.sent[notify.NoticesTopic]
	if err != nil || r != (notify.RemindReport{Pointed: len(want)}) || len(got) != len(want) {
		t.Fatalf("%+v by %d messages, %v", r, len(got), err)
	}
	for _, m := range want {
		if !slices.Contains(got, m) {
			t.Errorf("nothing points at %s", m.Body)
		}
	}
	if _, err := notify.Remind(t.Context(), p.table, &relayed{fail: "outbox"}, now); !errors.Is(err, errRefused) {
		t.Errorf("the error is %v", err)
	}
}

func TestOneRunEndsABoundedNumberOfNotices(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	n := p.pinNotice()
	var ops []table.Op
	for i := range notify.MaxEnded + 7 {
		ops = append(ops, n.Op(start(), fmt.Sprint(i)))
	}
	for some := range slices.Chunk(ops, table.MaxOps) {
		must(t, p.table.Write(t.Context(), some...))
	}
	for _, want := range []int{notify.MaxEnded, 7, 0} {
		if r, err := notify.Remind(t.Context(), p.table, &relayed{}, start().Add(2*time.Hour)); err != nil || r.Ended != want || r.Pointed != 0 {
			t.Errorf("%+v, want %d, %v", r, want, err)
		}
	}
}
