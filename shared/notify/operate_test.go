package notify_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// waysTo brings a notice into each state that an operator may find.
func waysTo() map[string]steps {
	return map[string]steps{
		"new":       nil,
		"postponed": {tried(errDown)},
		"claimed":   {died(errDown)},
		"dead":      {died(errDown), after(notify.Lease)},
		"sent":      {sent},
		"bounced":   {sent, reported(notify.Undelivered, "")},
		"given up":  {tried(mail.ErrPermanent)},
		"obsolete":  {removed, sent},
		"cancelled": {cancelled(nil)},
	}
}

// operated tells what an operator does with a notice in each state. want is how it stands then, where that is
// possible; elsewhere refused is the error, and it stays as it was.
func operated(t *testing.T, do func(want error) func(*run), then func(*run), wants map[string]want, refused map[string]error) {
	t.Parallel()
	for where, way := range waysTo() {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			r := begin(t, link, true)
			for _, step := range way {
				r.do(step)
			}
			before := r.machine.state(t, r.notice.ID)
			r.do(do(refused[where]))
			if refused[where] != nil {
				if now := r.machine.state(t, r.notice.ID); now != before {
					t.Errorf("it is now %+v, but was %+v", now, before)
				}
				return
			}
			r.do(then)
			r.check(wants[where])
		})
	}
}

func TestOperatorRetriesANoticeThatDidNotArrive(t *testing.T) {
	isSent := func(says string, tries int64, taken int) want {
		return want{state: notify.Sent, says: says, tries: tries, taken: taken}
	}
	operated(t, retried, sent, map[string]want{
		"new": isSent("", 1, 1), "postponed": isSent("down", 2, 1), "dead": isSent("", 2, 1), "given up": isSent("", 2, 1),
		"bounced": isSent("", 2, 2), "cancelled": isSent("", 1, 1),
		"obsolete": {state: notify.Failed, says: gone, tries: 2, again: 0},
	}, map[string]error{"claimed": notify.ErrClaimed, "sent": notify.ErrSent})
}

func TestOperatorCancelsAWaitingNotice(t *testing.T) {
	late := func(r *run) { after(time.Hour)(r); sent(r) }
	isCancelled := func(tries int64) want { return want{state: notify.Failed, says: notify.Cancelled, tries: tries} }
	operated(t, cancelled, late, map[string]want{"new": isCancelled(0), "postponed": isCancelled(1), "dead": isCancelled(1)}, map[string]error{
		"claimed": notify.ErrClaimed, "sent": notify.ErrSent,
		"given up": notify.ErrFailed, "bounced": notify.ErrFailed, "obsolete": notify.ErrFailed, "cancelled": notify.ErrFailed,
	})
}

func TestOperatorNeverOvertakesASender(t *testing.T) {
	sending := want{state: notify.Sending, tries: 1}
	anotherRetry := func(r *run) { retried(nil)(r); sentByAnother(r) }
	isSent := func(tries int64) want { return want{state: notify.Sent, tries: tries, taken: 1} }
	tell(t, []story{
		{"a retry beside a claim", link, steps{beside(1, died(errDown), retried(notify.ErrClaimed))}, sending},
		{"a cancel beside a claim", link, steps{beside(1, died(errDown), cancelled(notify.ErrClaimed))}, sending},
		{"a retry of what was given up beside one that was sent", link, steps{tried(mail.ErrPermanent), beside(1, anotherRetry, retried(notify.ErrClaimed))}, isSent(2)},
		{"a retry of what was cancelled beside one that was sent", link, steps{cancelled(nil), beside(1, anotherRetry, retried(notify.ErrClaimed))}, isSent(1)},
		{"a PIN that is cancelled leaves nothing", pin, steps{cancelled(nil)}, want{}},
	})
}

func TestNobodyKnowsAnotherNotice(t *testing.T) {
	t.Parallel()
	r := begin(t, link, true)
	r.operated(notify.ErrUnknown, notify.Retry(t.Context(), r.table, start(), "nobody"))
	r.operated(notify.ErrUnknown, notify.Cancel(t.Context(), r.table, start(), "nobody"))
	if _, err := notify.Find(t.Context(), r.table, "nobody"); !errors.Is(err, notify.ErrUnknown) {
		t.Errorf("it is found: %v", err)
	}
	if again := handle(t, r.sender, r.linkNotice(1).Op(start(), "rolled-back").Value.(notify.Notice)); again != 0 || r.provider.tries != 0 {
		t.Errorf("what was rolled back is sent, or tried again after %v", again)
	}
	r.check(want{state: notify.Queued})
}

func TestWaitingAndGivenUpNoticesAreListed(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.sender(t, mails{(&provider{fail: mail.ErrPermanent}).take})
	var gone []string
	for i := range int64(3) {
		n := p.put(t, p.linkNotice(i+1))
		p.pass(t, s)
		gone = append([]string{n.ID}, gone...) // newest first
	}
	want := []string{poison().SK}
	for i := range int64(20) {
		want = append(want, p.put(t, p.linkNotice(i+10)).ID)
	}
	must(t, p.table.Write(t.Context(), table.Put(poison(), odd{V: 1, Tries: "many"})))
	var got []string
	for n, err := range notify.Waiting(t.Context(), p.table) {
		must(t, err)
		got = append(got, n.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("waiting: %v", got)
	}
	if failed := idsOf(p.failed(t)); !slices.Equal(failed, gone) {
		t.Errorf("given up: %v, want %v", failed, gone)
	}
}
