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
	receiptOf := func(p *machine) notify.Notice {
		n := p.receiptNotice(1)
		n.Expires = start().Add(day).Unix()
		return n
	}
	ended, waits := reminded(0, 1), reminded(1, 0)
	retry := func(r *run) { retried(nil)(r); r.clock.advance(time.Hour) }
	tell(t, []story{
		{"a link that works", lasting(day), steps{after(2 * time.Hour), waits}, isQueued("", 0, 0)},
		{"a link that has just expired", lasting(day), steps{after(day), ended, reminded(0, 0)}, isFailed(over, 0)},
		{"a receipt that has expired", receiptOf, steps{after(2 * day), ended}, isFailed(over, 0)},
		{"a PIN that has expired", pin, steps{after(2 * time.Hour), ended}, want{}},
		{"a link that never expires, after weeks", lasting(0), steps{after(89 * day), waits}, isQueued("", 0, 0)},
		{"a link that never expires, after months", lasting(0), steps{after(90 * day), ended}, isFailed(tooLate, 0)},
		{"one that an operator has retried", lasting(0), steps{after(91 * day), retry, waits}, isQueued("", 0, 0)},
		{"one that a sender claims meanwhile", lasting(day), steps{after(2 * day), beside(1, claimedBeside, ended)}, isSending(1, 0)},
	})
}

const tooLate = "the notice is obsolete: it has waited too long"

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
