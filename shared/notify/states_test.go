package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

var errDown = errors.New("down")

const (
	day    = 24 * time.Hour
	month  = 30 * day
	year   = 365 * day
	first  = 750 * time.Millisecond // the first backoff, with a jitter of one half
	gone   = "the notice is obsolete: the file was removed"
	over   = "the notice is obsolete: it has expired"
	barred = "the notice cannot be delivered: the address takes no mail from here: it bounced"
)

func TestNoticeIsSentOnce(t *testing.T) {
	isSent := want{state: notify.Sent, tries: 1, taken: 1}
	isSent.logs = "notice sent"
	calls := func(w want, calls string) want { w.calls = calls; return w }
	tell(t, []story{
		{"a link by mail", link, steps{sent}, calls(isSent, "get 1, write 1, get 2, write 3")},
		{"a link by text message", text, steps{sent}, calls(isSent, "get 1, write 1, get 1, write 3")},
		{"a receipt", receipt, steps{sent}, isSent},
		{"a PIN, which leaves nothing", pin, steps{sent}, want{taken: 1, calls: "get 1, write 1, get 1, write 1"}},
		{"another time", link, steps{sent, sent}, calls(isSent, "get 1")},
		{"a PIN until it expires", pin, steps{after(15*time.Minute - time.Second), sent}, want{taken: 1}},
		{"one from a clock that was ahead", ahead(link), steps{after(-year), sent}, isSent},
		{"one that was tried by a clock that was ahead", ahead(link), steps{tried(errDown), after(-year), sent}, want{state: notify.Sent, says: "down", tries: 2, taken: 1}},
		{"a text message to a number that mails must not go to", text, steps{suppress(notify.AddressBounced), sent}, want{state: notify.Sent, tries: 1, taken: 1, suppressed: notify.AddressBounced}},
	})
}

// ahead makes the notice while the clock is a year ahead.
func ahead(notice func(*machine) notify.Notice) func(*machine) notify.Notice {
	return func(p *machine) notify.Notice {
		p.clock.advance(year)
		return notice(p)
	}
}

func TestNoticeThatCannotBeSentFails(t *testing.T) {
	const permanent = "the notice cannot be delivered: "
	refused := func(says string) want { return want{state: notify.Failed, says: says, tries: 1, operator: true} }
	obsolete := func(says string) want {
		return want{state: notify.Failed, says: says, tries: 1, logs: "notice dropped"}
	}
	suppressed := func(says string, reason notify.SuppressReason) want {
		w := refused(permanent + "the address takes no mail from here: " + says)
		w.suppressed = reason
		return w
	}
	refusedWith := func(calls string) want { w := refused(permanent + "mail: refused for good"); w.calls = calls; return w }
	tell(t, []story{
		{"a mail that is refused for good", link, steps{tried(mail.ErrPermanent)}, refusedWith("get 1, write 1, get 2, write 3")},
		{"a text message that is refused for good", text, steps{tried(notify.ErrTextRefused)}, refused(permanent + "sms: refused for good")},
		{"a mail without a provider", link, steps{withoutProviders, sent}, refused(permanent + "no mail server configured")},
		{"a text message without a provider", text, steps{withoutProviders, sent}, refused(permanent + "no SMS provider configured")},
		{"a mail to an address that bounced", link, steps{suppress(notify.AddressBounced), sent}, suppressed("it bounced", notify.AddressBounced)},
		{"a mail whose link has expired", link, steps{after(7 * day), sent}, obsolete(over)},
		{"a mail whose file was removed", link, steps{removed, sent}, obsolete(gone)},
		{"a mail whose file's own time is over", link, steps{outdated, sent}, obsolete("the notice is obsolete: the file has expired")},
		{"a text message whose file was removed", text, steps{removed, sent}, obsolete(gone)},
		{"a PIN that has expired", pin, steps{after(15 * time.Minute), sent}, want{logs: "notice dropped"}},
		{"a PIN that is refused for good, which an operator may see", pin, steps{tried(mail.ErrPermanent)}, refused(permanent + "mail: refused for good")},
	})
}

func TestNoticeThatFailsForNowIsTriedAgain(t *testing.T) {
	queued := func(tries int64, again time.Duration) want {
		return want{state: notify.Queued, says: "down", tries: tries, again: again}
	}
	failed := want{state: notify.Queued, says: "down", tries: 1, again: first, calls: "get 1, write 1, get 2, write 1", logs: "notice not sent yet"}
	tell(t, []story{
		{"but not at first", link, nil, want{state: notify.Queued}},
		{"after a while", link, steps{tried(errDown)}, failed},
		{"after longer", link, steps{times(4, tried(errDown), waited)}, queued(4, 8*first)},
		{"but not too early", link, steps{tried(errDown), after(first / 3), sent}, queued(1, first*2/3)},
		{"in time", link, steps{tried(errDown), waited, sent}, want{state: notify.Sent, says: "down", tries: 2, taken: 1}},
	})
}

func TestNoticeOfASenderThatDiesIsTriedAgainWhenItsLeaseEnds(t *testing.T) {
	sending := want{state: notify.Sending, tries: 1}
	early := want{state: notify.Sending, tries: 1, again: time.Millisecond}
	tell(t, []story{
		{"it died before the provider took the message", link, steps{died(errDown)}, sending},
		{"when the provider refused it", link, steps{died(mail.ErrPermanent)}, sending},
		{"when there was nothing to send", link, steps{removed, died(nil)}, sending},
		{"the lease has not ended", link, steps{died(errDown), after(notify.Lease - time.Millisecond), sent}, early},
		{"the lease has ended", link, steps{died(errDown), after(notify.Lease), sent}, want{state: notify.Sent, tries: 2, taken: 1}},
		{"the message goes out twice if the provider had taken it", link, steps{died(nil), after(notify.Lease), sent}, want{state: notify.Sent, tries: 2, taken: 2}},
		{"and fails", link, steps{died(errDown), after(notify.Lease), tried(errDown)}, want{state: notify.Queued, says: "down", tries: 2, again: 2 * first}},
	})
}

func TestSendersDoNotOvertakeEachOther(t *testing.T) {
	late := func(r *run) {
		fail := r.provider.fail
		r.clock.advance(notify.Lease)
		died(errDown)(r)
		r.provider.fail = fail
	}
	held := func(taken int, again time.Duration) want {
		return want{state: notify.Sending, tries: 2, taken: taken, again: again}
	}
	tell(t, []story{
		{"one claims before the other", link, steps{beside(1, died(errDown), sent)}, want{state: notify.Sending, tries: 1, again: notify.Lease}},
		{"one sends before the other claims", link, steps{beside(1, sentByAnother, sent)}, want{state: notify.Sent, tries: 1, taken: 1, again: notify.Lease}},
		{"one has sent after its lease", link, steps{beside(2, late, sent)}, held(1, 0)},
		{"one has failed for now after its lease", link, steps{beside(2, late, tried(errDown))}, held(0, time.Millisecond)},
		{"one has failed for good after its lease", link, steps{beside(2, late, tried(mail.ErrPermanent))}, held(0, 0)},
		{"one had nothing to send after its lease", link, steps{removed, beside(2, late, sent)}, held(0, 0)},
	})
}

// TestRetriesBackOffToAnHour sets how often the notice was tried before.
func TestRetriesBackOffToAnHour(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[float64][]time.Duration{
		0: {500 * time.Millisecond, time.Second, 2 * time.Second, 1024 * time.Second, 30 * time.Minute, 30 * time.Minute},
		1: {time.Second, 2 * time.Second, 4 * time.Second, 2048 * time.Second, time.Hour, time.Hour},
	} {
		for i, tries := range []int64{1, 2, 3, 12, 13, 1 << 40} {
			r := begin(t, func(p *machine) notify.Notice { n := p.linkNotice(1); n.Tries = tries - 1; return n }, true)
			r.sender.Jitter = func() float64 { return jitter }
			if tried(errDown)(r); r.again != want[i] {
				t.Errorf("after %d tries with jitter %v: %v, want %v", tries, jitter, r.again, want[i])
			}
		}
	}
}

// TestNoticeIsGivenUpInTheEnd tries a notice whenever it is due.
func TestNoticeIsGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	rate, quota := refusal(mail.ErrRate), refusal(mail.ErrQuota)
	for name, tt := range map[string]struct {
		notice             func(*machine) notify.Notice
		before             steps
		fail               error
		tries, mostTries   int
		waited, mostWaited time.Duration
	}{
		"after a day": {link, nil, errDown, 30, 50, day, day + time.Hour},
		"after some tries, if it had waited for days":                    {link, steps{after(3 * day)}, errDown, 12, 12, 20 * time.Minute, 3 * time.Hour},
		"after some tries, if it came from a clock that was ahead":       {ahead(link), steps{after(-year)}, errDown, 12, 12, 20 * time.Minute, 3 * time.Hour},
		"a day after an operator retried it":                             {link, steps{tried(mail.ErrPermanent), after(day + time.Hour), retried(nil)}, errDown, 30, 50, day, day + time.Hour},
		"after three days without a quota, and leaves no dead letter":    {receipt, steps{after(month)}, quota, 72, maxReceives / 2, 3 * day, 3*day + time.Hour},
		"after all its tries, once there is a quota":                     {link, steps{times(48, tried(quota), waited)}, errDown, 12, 12, 20 * time.Minute, 3 * time.Hour},
		"a code without a rate once it expires, tried every few seconds": {pin, nil, rate, 200, 1000, 15 * time.Minute, 15*time.Minute + 4*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, tt.notice, true)
			for _, step := range tt.before {
				r.do(step)
			}
			before, begun, tries := r.provider.tries, r.clock.now(), 0
			for r.do(tried(tt.fail)); r.again > 0; r.do(tried(tt.fail)) {
				waited(r)
			}
			tries = r.provider.tries - before
			if tries < tt.tries || tries > tt.mostTries {
				t.Errorf("it was given up after %d tries", tries)
			}
			if waited := r.clock.now().Sub(begun); waited < tt.waited || waited > tt.mostWaited {
				t.Errorf("it was given up after %v", waited)
			}
			if n := r.machine.state(t, r.notice.ID); r.notice.Kind != notify.PIN && (n.State() != notify.Failed || n.LastError != tt.fail.Error() || len(r.failed(t)) != 1) || r.waiting(t) != 0 {
				t.Errorf("it is %+v", n)
			}
		})
	}
}

// maxReceives is how often the stack's queues give out a message before it is a dead letter.
const maxReceives = 200

func refusal(limit error) error {
	return fmt.Errorf("sending mail: %w: %w", limit, errors.New("status 429"))
}

func TestARefusalForALimitIsNoTry(t *testing.T) {
	rate, quota := refusal(mail.ErrRate), refusal(mail.ErrQuota)
	held := func(limit error, again time.Duration) want {
		return want{state: notify.Queued, says: limit.Error(), again: again}
	}
	const longest = 45 * time.Minute // with a jitter of one half
	tell(t, []story{
		{"a rate", link, steps{tried(rate)}, held(mail.ErrRate, first)},
		{"a rate, for the fourth time", link, steps{times(3, tried(rate), waited), tried(rate)}, held(mail.ErrRate, 8*first)},
		{"a rate, for long", link, steps{times(20, tried(rate), waited), tried(rate)}, held(mail.ErrRate, longest)},
		{"a rate, for long, then another failure", link, steps{times(20, tried(rate), waited), tried(errDown)}, want{state: notify.Queued, says: "down", tries: 1, again: first}},
		{"a rate, for long, then none", link, steps{times(20, tried(rate), waited), sent}, want{state: notify.Sent, says: mail.ErrRate.Error(), tries: 1, taken: 1}},
		{"a quota", link, steps{tried(quota)}, held(mail.ErrQuota, longest)},
		{"a rate, for a code, which is tried every few seconds", pin, steps{times(20, tried(rate), waited), tried(rate)}, held(mail.ErrRate, 4*first)},
		{"a quota, for a code", pin, steps{tried(quota)}, held(mail.ErrQuota, first)},
	})
}

func TestWhileAQuotaIsUsedUpOneMailIsTriedAndTheOthersWait(t *testing.T) {
	t.Parallel()
	r := begin(t, link, true)
	r.do(tried(refusal(mail.ErrQuota)))
	r.provider.fail = nil
	second, code, message := r.put(t, r.linkNotice(2)), r.put(t, r.pinNotice()), r.put(t, text(r.machine))
	if again := handle(t, r.sender, second); again != r.again || r.provider.tries != 1 {
		t.Errorf("the second mail was tried, or is again after %v", again)
	}
	if n := r.machine.state(t, second.ID); n.State() != notify.Queued || n.LastError != mail.ErrQuota.Error() || n.Tried() != 0 || n.Held != start().Unix() {
		t.Errorf("the second mail is %+v", n)
	}
	if handle(t, r.sender, code) != 0 || handle(t, r.sender, message) != 0 || r.provider.tries != 3 {
		t.Error("the code or the text message waits")
	}
	waited(r)
	if again := handle(t, r.sender, second); again != 0 || r.machine.state(t, second.ID).State() != notify.Sent {
		t.Errorf("the second mail waits for another %v", again)
	}
}

// TestAClockThatWasAheadHoldsNoMailUp: the quota seems to free a day from now.
func TestAClockThatWasAheadHoldsNoMailUp(t *testing.T) {
	t.Parallel()
	r := begin(t, func(p *machine) notify.Notice { p.clock.advance(day); return p.linkNotice(1) }, true)
	r.do(tried(refusal(mail.ErrQuota)))
	r.clock.advance(-day)
	r.provider.fail = nil
	if again := handle(t, r.sender, r.put(t, r.linkNotice(2))); again != 0 || len(r.provider.taken) != 1 {
		t.Errorf("another mail waits for %v", again)
	}
}

func TestFeedbackMayComeInAnyOrder(t *testing.T) {
	const bounce = "bounced: smtp; 550 5.1.1 <a***@example.com> unknown"
	bounced := reported(notify.Bounced, "smtp; 550 5.1.1 <ann@example.com> unknown")
	delivered, complained, lost := reported(notify.Delivered, ""), reported(notify.Complained, ""), reported(notify.Undelivered, "phone is off")
	later := after(time.Minute)
	arrived := want{state: notify.Sent, tries: 1, taken: 1, delivered: time.Minute}
	failed := func(says string, delivered time.Duration, reason notify.SuppressReason) want {
		return want{state: notify.Failed, says: says, tries: 1, taken: 1, delivered: delivered, suppressed: reason}
	}
	calls := func(w want, calls string) want { w.calls = calls; return w }
	refused := want{state: notify.Failed, says: "the notice cannot be delivered: mail: refused for good", tries: 1, operator: true}
	tell(t, []story{
		{"a delivery", link, steps{sent, later, delivered}, calls(arrived, "get 3, write 1")},
		{"a delivery reported twice", link, steps{sent, later, delivered, later, delivered}, arrived},
		{"a bounce", link, steps{sent, later, bounced}, calls(failed(bounce, 0, notify.AddressBounced), "get 3, write 3")},
		{"a bounce reported twice", link, steps{sent, bounced, later, bounced}, failed(bounce, 0, notify.AddressBounced)},
		{"a bounce after a delivery", link, steps{sent, later, delivered, later, bounced}, failed(bounce, time.Minute, notify.AddressBounced)},
		{"a delivery after a bounce", link, steps{sent, bounced, later, delivered}, failed(bounce, 0, notify.AddressBounced)},
		{"a complaint", link, steps{sent, later, delivered, complained}, failed("complained", time.Minute, notify.AddressComplained)},
		{"a complaint after a bounce", link, steps{sent, bounced, complained}, failed(bounce, 0, notify.AddressBounced)},
		{"a message that was lost", link, steps{sent, lost}, failed("not delivered: phone is off", 0, "")},
		{"a delivery of what was given up", link, steps{tried(mail.ErrPermanent), delivered}, refused},
		{"a bounce of what was given up", link, steps{tried(mail.ErrPermanent), bounced}, refused},
		{"a bounce before it was sent, which must come again", link, steps{bounced}, want{state: notify.Queued}},
		{"a bounce that comes again", link, steps{bounced, sent, bounced}, failed(bounce, 0, notify.AddressBounced)},
		{"a bounce with a long detail, which is cut", link, steps{sent, reported(notify.Bounced, strings.Repeat("so ", 5000)+"\r\n")}, failed("bounced: "+strings.Repeat("so ", 100), 0, notify.AddressBounced)},
		{"a bounce of a PIN, which is not known any more", pin, steps{sent, bounced}, want{taken: 1}},
	})
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
	if got := idsOf(all); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

func idsOf(all []notify.Notice) (ids []string) {
	for _, n := range all {
		ids = append(ids, n.ID)
	}
	return ids
}

// torn is a table whose GetMany reads the outbox last, and calls between before that.
type torn struct {
	*double
	between func()
}

func (t *torn) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	before, err := t.double.GetMany(ctx, keys...)
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
	for name, tt := range map[string]struct {
		moves func(*run)
		want  notify.State
		calls string
	}{
		"it is sent":     {sent, notify.Sent, "get 9, get 3"},
		"it is given up": {tried(mail.ErrPermanent), notify.Failed, "get 9, get 3"},
		"it stays":       {func(*run) {}, notify.Queued, "get 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, link, true)
			before, behind := r.put(t, r.linkNotice(2)), r.put(t, r.linkNotice(3))
			handle(t, r.another(r.table), before)
			tab := &torn{&double{Table: r.table}, func() { tt.moves(r) }}
			all, err := notify.States(t.Context(), tab, []string{before.ID, r.notice.ID, behind.ID})
			if err != nil || len(all) != 3 || all[1].ID != r.notice.ID || all[1].State() != tt.want {
				t.Errorf("got %+v, %v", all, err)
			}
			if got := strings.Join(tab.calls, ", "); got != tt.calls {
				t.Errorf("it costs %s, want %s", got, tt.calls)
			}
		})
	}
	t.Run("it is sent before its bounce is recorded", func(t *testing.T) {
		t.Parallel()
		r := begin(t, link, true)
		tab := &torn{&double{Table: r.table}, func() { sent(r) }}
		must(t, notify.Record(t.Context(), tab, start(), notify.Feedback{ID: r.notice.ID, Kind: notify.Bounced}))
		if got := r.state(); got != notify.Failed {
			t.Errorf("it is %s", got)
		}
	})
}

func TestEndedNoticeIsKeptAsLongAsItsFileWithinBounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expires, keeps time.Duration
		end            func(*run)
	}{
		"as the file":                  {10 * day, 10 * day, sent},
		"a file that goes tomorrow":    {day, 3 * day, sent},
		"a file that stays for a year": {year, 90 * day, sent},
		"a file that never expires":    {0, 90 * day, sent},
		"one that was given up":        {0, month, tried(mail.ErrPermanent)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, lasting(tt.expires), true)
			tt.end(r)
			for _, at := range []time.Duration{tt.keeps - time.Second, tt.keeps + time.Second} {
				if _, err := r.table.DeleteExpired(t.Context(), start().Add(at)); err != nil {
					t.Fatal(err)
				}
				if there := r.state() != ""; there != (at < tt.keeps) {
					t.Errorf("after %v it is there: %v", at, there)
				}
			}
		})
	}
}

// lasting is a link that expires after some time, or never.
func lasting(life time.Duration) func(*machine) notify.Notice {
	return func(p *machine) notify.Notice {
		n := p.linkNotice(1)
		if n.Expires = 0; life > 0 {
			n.Expires = start().Add(life).Unix()
		}
		return n
	}
}
