package notify_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// waysTo brings a notice into each state that an operator may find.
func waysTo() map[string]steps {
	return map[string]steps{
		"new":       nil,
		"postponed": {down},
		"claimed":   {died(errDown)},
		"dead":      {died(errDown), after(notify.Lease)},
		"sent":      {sent},
		"bounced":   {sent, reported(notify.Undelivered, "")},
		"given up":  {refused},
		"obsolete":  {removed, sent},
		"cancelled": {cancelled(nil)},
	}
}

// operated tells what an operator does with a notice in each state. Where a state has an error, the notice stays as it
// was; elsewhere another step follows, and then the notice stands as wanted.
func operated(
	t *testing.T,
	do func(error) func(*run),
	refused map[string]error,
	then func(*run),
	wants map[string]want,
) {
	t.Parallel()
	for where, way := range waysTo() {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			r := begin(t, link, true)
			for _, step := range way {
				r.do(step)
			}
			before := r.find(r.notice.ID)
			r.do(do(refused[where]))
			if refused[where] == nil {
				r.do(then)
				r.check(wants[where])
			} else if now := r.find(r.notice.ID); !reflect.DeepEqual(now, before) {
				t.Errorf("it is now %+v, but was %+v", now, before)
			}
		})
	}
}

func TestOperatorRetriesANoticeThatDidNotArrive(t *testing.T) {
	operated(t, retried, map[string]error{"claimed": notify.ErrLeased, "sent": notify.ErrSent}, sent, map[string]want{
		"new": isSent(
			"",
			1,
			1,
		), "postponed": isSent("down", 2, 1), "dead": isSent("", 2, 1), "given up": isSent("", 2, 1),
		"bounced": isSent("", 2, 2), "cancelled": isSent("", 1, 1), "obsolete": isFailed(gone, 2),
	})
}

func TestOperatorCancelsAWaitingNotice(t *testing.T) {
	ended := map[string]error{"claimed": notify.ErrLeased, "sent": notify.ErrSent}
	for _, where := range []string{"given up", "bounced", "obsolete", "cancelled"} {
		ended[where] = notify.ErrFailed
	}
	cancels := func(tries int64) want { return isFailed(notify.Cancelled, tries) }
	late := func(r *run) { after(time.Hour)(r); sent(r) }
	operated(t, cancelled, ended, late, map[string]want{"new": cancels(0), "postponed": cancels(1), "dead": cancels(1)})
}

func TestOperatorNeverOvertakesASender(t *testing.T) {
	claim, retry := died(errDown), func(r *run) { retried(nil)(r); sentByAnother(r) }
	retriedLate, cancelledLate := retried(notify.ErrLeased), cancelled(notify.ErrLeased)
	tell(t, []story{
		{
			name:   "a retry beside a claim",
			notice: link,
			steps:  steps{beside(1, claim, retriedLate)},
			want:   isSending(1, 0),
		},
		{
			name:   "a cancel beside a claim",
			notice: link,
			steps:  steps{beside(1, claim, cancelledLate)},
			want:   isSending(1, 0),
		},
		{
			name:   "a retry of what was given up beside another",
			notice: link,
			steps:  steps{refused, beside(1, retry, retriedLate)},
			want:   isSent("", 2, 1),
		},
		{
			name:   "a retry of what was cancelled beside another",
			notice: link,
			steps:  steps{cancelled(nil), beside(1, retry, retriedLate)},
			want:   isSent("", 1, 1),
		},
		{name: "a PIN that is cancelled leaves nothing", notice: pin, steps: steps{cancelled(nil)}, want: want{}},
	})
}

func TestNobodyKnowsAnotherNotice(t *testing.T) {
	t.Parallel()
	r := begin(t, link, true)
	r.operated(notify.ErrUnknown, notify.Retry(t.Context(), r.table, start(), "nobody"))
	r.operated(notify.ErrUnknown, notify.Cancel(t.Context(), r.table, start(), "nobody"))
	_, err := notify.Find(t.Context(), r.table, "nobody")
	expect.Err(t, "finding it", err, notify.ErrUnknown)
	undone := r.linkNotice(1).Op(start(), "rolled-back").Value.(notify.Notice)
	if again := handle(t, r.sender, undone); again != 0 || r.provider.tries != 0 {
		t.Errorf("what was rolled back is sent, or tried again after %v", again)
	}
	r.check(isQueued("", 0, 0))
}

func TestWaitingAndGivenUpNoticesAreListed(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.sender(p.table, (&provider{fail: mail.ErrPermanent}).take)
	var gone []string
	for i := range int64(3) {
		n := p.put(p.linkNotice(i + 1))
		p.pass(s)
		gone = append([]string{n.ID}, gone...) // newest first
	}
	want := []string{poison().SK}
	for i := range int64(20) {
		want = append(want, p.put(p.linkNotice(i+10)).ID)
	}
	must(t, p.table.Write(t.Context(), table.Put(poison(), odd{V: 1, Tries: "many"})))
	got := idsOf(p.all(notify.Waiting(t.Context(), p.table)))
	slices.Sort(got)
	expect.Equal(t, "waiting", got, want)
	expect.Equal(t, "given up", idsOf(p.failed()), gone)
}

func TestNoticeThatIsTooLateIsEnded(t *testing.T) {
	ended, waits := reminded(0, 1), reminded(1, 0)
	retry := func(r *run) { retried(nil)(r); r.clock.advance(time.Hour) }
	tell(t, []story{
		{
			name:   "a link that has just expired",
			notice: lasting(day),
			steps:  steps{after(day), ended, reminded(0, 0)},
			want:   isFailed(over, 0),
		},
		{name: "a PIN that has expired", notice: pin, steps: steps{after(2 * time.Hour), ended}, want: want{}},
		{
			name:   "a link that never expires, after weeks",
			notice: lasting(0),
			steps:  steps{after(89 * day), waits},
			want:   isQueued("", 0, 0),
		},
		{
			name:   "a link that never expires, after months",
			notice: lasting(0),
			steps:  steps{after(90 * day), ended},
			want:   isFailed(tooLate, 0),
		},
		{
			name:   "one that an operator has retried",
			notice: lasting(0),
			steps:  steps{after(91 * day), retry, waits},
			want:   isQueued("", 0, 0),
		},
		{
			name:   "one that a sender claims meanwhile",
			notice: lasting(day),
			steps:  steps{after(2 * day), beside(1, claimedBeside, ended)},
			want:   isSending(1, 0),
		},
	})
}

const tooLate = "the notice is obsolete: it has waited too long"

// claimedBeside is a claim of a sender that still thinks that the notice is good.
func claimedBeside(r *run) {
	op := table.Update(r.notice.Key()).
		Add("tries", 1).
		Set("sending", true).
		Set("notBefore", r.clock.now().Add(notify.Lease).UnixMilli())
	must(r.T, r.table.Write(r.Context(), op))
}

func TestSendersArePointedAtNoticesDueForAnHour(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	late, message, held := p.put(p.linkNotice(1)), p.put(text(p)), p.put(p.linkNotice(2))
	later := table.Update(held.Key()).Set("notBefore", start().Add(2*time.Hour).UnixMilli())
	must(t, p.table.Write(t.Context(), later, table.Put(poison(), odd{V: 1})))
	p.clock.advance(time.Minute)
	p.put(p.linkNotice(3)) // which is not late yet
	var topics relayed
	now := start().Add(time.Hour)
	r, err := notify.Remind(t.Context(), p.table, &topics, now)
	got := topics.sent[notify.NoticesTopic]
	if err != nil || r != (notify.RemindReport{Pointed: 3}) || len(got) != 3 {
		t.Fatalf("%+v by %+v, %v", r, got, err)
	}
	for _, want := range []notify.TopicMessage{
		notify.Pointer(late.Key(), files.Mail), notify.Pointer(message.Key(), files.SMS), notify.Pointer(poison(), ""),
	} {
		if !slices.Contains(got, want) {
			t.Errorf("nothing points at %s", want.Body)
		}
	}
	_, err = notify.Remind(t.Context(), p.table, &relayed{fail: "outbox"}, now)
	expect.Err(t, "a topic that refuses", err, errRefused)
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
		if r, err := notify.Remind(t.Context(), p.table, &relayed{}, start().Add(2*time.Hour)); err != nil ||
			r.Ended != want ||
			r.Pointed != 0 {
			t.Errorf("%+v, want %d, %v", r, want, err)
		}
	}
}
