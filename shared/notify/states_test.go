package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

var errDown = errors.New("down")

const (
	day   = 24 * time.Hour
	month = 30 * day
	year  = 365 * day
	first = 750 * time.Millisecond // the first backoff, with a jitter of one half
	gone  = "the notice is obsolete: the file was removed"
	over  = "the notice is obsolete: it has expired"

	permanent = "the notice cannot be delivered: mail: refused for good"
	outlived  = "the notice is obsolete: the file has expired"
)

func TestNoticeIsSentOnce(t *testing.T) {
	once := isSent("", 1, 1)
	tell(t, []story{
		{"a link by mail", link, steps{sent}, once},
		{"a link by text message", text, steps{sent}, once},
		{"a PIN, which leaves nothing", pin, steps{sent}, want{taken: 1}},
		{"another time", link, steps{sent, sent}, once},
		{"a PIN until it expires", pin, steps{after(15*time.Minute - time.Second), sent}, want{taken: 1}},
		{"one from a clock that was ahead", ahead(link), steps{after(-year), sent}, once},
		{"a text message, whatever mails did", text, steps{suppress(notify.AddressBounced), sent}, once.suppressing(notify.AddressBounced)},
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
	givenUp := func(why string) want { return isGivenUp("the notice cannot be delivered: "+why, 1) }
	obsolete := func(says string) want { return isFailed(says, 1) }
	bounced := givenUp("the address takes no mail from here: it bounced").suppressing(notify.AddressBounced)
	tell(t, []story{
		{"a refused mail", link, steps{refused}, isGivenUp(permanent, 1)},
		{"a refused text message", text, steps{tried(notify.ErrTextRefused)}, givenUp("sms: refused for good")},
		{"a refused PIN, which only an operator may see", pin, steps{refused}, isGivenUp(permanent, 1)},
		{"a mail without a provider", link, steps{withoutProviders, sent}, givenUp("no provider is configured for the channel \"mail\"")},
		{"a mail to an address that bounced", link, steps{suppress(notify.AddressBounced), sent}, bounced},
		{"a mail whose link has expired", link, steps{after(7 * day), sent}, obsolete(over)},
		{"a mail whose file was removed", link, steps{removed, sent}, obsolete(gone)},
		{"a mail whose file's own time is over", link, steps{outdated, sent}, obsolete(outlived)},
		{"a PIN that has expired", pin, steps{after(15 * time.Minute), sent}, want{}},
	})
}

func TestNoticeThatFailsForNowIsTriedAgain(t *testing.T) {
	once := isQueued("down", 1, first)
	tell(t, []story{
		{"after a while", link, steps{down}, once},
		{"but not too early", link, steps{down, after(first / 3), sent}, isQueued("down", 1, first*2/3)},
		{"in time", link, steps{down, waited, sent}, isSent("down", 2, 1)},
	})
}

func TestNoticeOfASenderThatDiesIsTriedAgainWhenItsLeaseEnds(t *testing.T) {
	ended := after(notify.Lease)
	early := after(notify.Lease - time.Millisecond)
	tell(t, []story{
		{"the lease has not ended", link, steps{died(errDown), early, sent}, isSending(1, time.Millisecond)},
		{"the lease has ended", link, steps{died(errDown), ended, sent}, isSent("", 2, 1)},
		{"the message goes out twice if the provider had taken it", link, steps{died(nil), ended, sent}, isSent("", 2, 2)},
		{"and fails", link, steps{died(errDown), ended, down}, isQueued("down", 2, 2*first)},
	})
}

func TestSendersDoNotOvertakeEachOther(t *testing.T) {
	late := func(r *run) {
		fail := r.provider.fail
		r.clock.advance(notify.Lease)
		died(errDown)(r)
		r.provider.fail = fail
	}
	taken, first := isSending(2, 0), isSent("", 1, 1)
	taken.taken, first.again = 1, notify.Lease
	tell(t, []story{
		{"one claims before the other", link, steps{beside(1, died(errDown), sent)}, isSending(1, notify.Lease)},
		{"one sends before the other claims", link, steps{beside(1, sentByAnother, sent)}, first},
		{"one has sent after its lease", link, steps{beside(2, late, sent)}, taken},
		{"one has failed for now after its lease", link, steps{beside(2, late, down)}, isSending(2, time.Millisecond)},
		{"one has failed for good after its lease", link, steps{beside(2, late, refused)}, isSending(2, 0)},
		{"one had nothing to send after its lease", link, steps{removed, beside(2, late, sent)}, isSending(2, 0)},
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
			if down(r); r.again != want[i] {
				t.Errorf("after %d tries with jitter %v: %v, want %v", tries, jitter, r.again, want[i])
			}
		}
	}
}

func TestAServerThatWantsAMailLaterGetsItSomeMinutesLater(t *testing.T) {
	t.Parallel()
	r := begin(t, link, true)
	for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
		if tried(refusal(mail.ErrLater))(r); r.again != want*time.Minute {
			t.Errorf("again after %v, want %d minutes", r.again, want)
		}
		r.do(waited)
	}
}

// TestNoticeIsGivenUpInTheEnd tries a notice whenever it is due.
func TestNoticeIsGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	const least, most = 20 * time.Minute, 3 * time.Hour // of the tries that each has
	rate, quota := refusal(mail.ErrRate), refusal(mail.ErrQuota)
	for name, tt := range map[string]struct {
		notice             func(*machine) notify.Notice
		before             steps
		fail               error
		tries, mostTries   int
		waited, mostWaited time.Duration
	}{
		"after a day":                 {link, nil, errDown, 30, 50, day, day + time.Hour},
		"after days in the outbox":    {link, steps{after(3 * day)}, errDown, 12, 12, least, most},
		"from a clock that was ahead": {ahead(link), steps{after(-year)}, errDown, 12, 12, least, most},
		"after an operator's retry":   {link, steps{refused, after(2 * day), retried(nil)}, errDown, 30, 50, day, day + time.Hour},
		"after a quota":               {link, steps{times(48, tried(quota), waited)}, errDown, 12, 12, least, most},
		"without a quota":             {receipt, steps{after(month)}, quota, 72, maxReceives / 2, 3 * day, 3*day + time.Hour},
		"without a quota, retried":    {receipt, steps{tried(quota), after(4 * day), retried(nil)}, quota, 72, maxReceives / 2, 3 * day, 3*day + time.Hour},
		"a code without a rate":       {pin, nil, rate, 200, 1000, 15 * time.Minute, 15*time.Minute + 4*time.Second},
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
			if failed := r.failed(); r.waiting() != 0 || r.notice.Kind != notify.PIN && (len(failed) != 1 || failed[0].LastError != tt.fail.Error()) {
				t.Errorf("given up: %+v", failed)
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
	held := func(limit error, again time.Duration) want { return isQueued(limit.Error(), 0, again) }
	long := times(20, tried(rate), waited)
	const longest = 45 * time.Minute // with a jitter of one half
	tell(t, []story{
		{"a rate", link, steps{tried(rate)}, held(mail.ErrRate, first)},
		{"a rate, for long", link, steps{long, tried(rate)}, held(mail.ErrRate, longest)},
		{"a rate, for long, then another failure", link, steps{long, down}, isQueued("down", 1, first)},
		{"a rate, for long, then none", link, steps{long, sent}, isSent(mail.ErrRate.Error(), 1, 1)},
		{"a quota", link, steps{tried(quota)}, held(mail.ErrQuota, longest)},
		{"a rate, for a code, which is tried every few seconds", pin, steps{long, tried(rate)}, held(mail.ErrRate, 4*first)},
		{"a quota, for a code", pin, steps{tried(quota)}, held(mail.ErrQuota, first)},
	})
}

func TestWhileAQuotaIsUsedUpOneMailIsTriedAndTheOthersWait(t *testing.T) {
	t.Parallel()
	r := begin(t, link, true)
	quota := refusal(mail.ErrQuota)
	r.do(tried(quota))
	code, message := r.put(r.pinNotice()), r.put(text(r.machine))
	expect.Equal(t, "when the code is tried again", handle(t, r.sender, code), first)
	r.provider.fail = nil
	second, third := r.put(r.linkNotice(2)), r.put(r.linkNotice(3))
	for _, n := range []notify.Notice{second, third} {
		if again := handle(t, r.sender, n); again != r.again || r.provider.tries != 2 {
			t.Errorf("another mail was tried, or is again after %v", again)
		}
		n = r.find(n.ID)
		if n.State() != notify.Queued || n.LastError != mail.ErrQuota.Error() || n.Tried() != 0 || n.Held != start().Unix() {
			t.Errorf("another mail is %+v", n)
		}
	}
	r.clock.advance(first)
	if handle(t, r.sender, code) != 0 || handle(t, r.sender, message) != 0 || r.provider.tries != 4 {
		t.Error("the code or the text message waits")
	}
	waited(r)
	if again := handle(t, r.sender, second); again != 0 || r.find(second.ID).State() != notify.Sent {
		t.Errorf("the second mail waits for another %v", again)
	}
	r.provider.fail = quota
	r.clock.advance(3 * day)
	handle(t, r.sender, r.put(r.linkNotice(4)))
	if again := handle(t, r.sender, third); again != 0 || r.find(third.ID).State() != notify.Failed {
		t.Errorf("after three days a mail waits for another %v", again)
	}
}

// TestAClockThatWasAheadHoldsNoMailUp: the quota seems to free a day from now.
func TestAClockThatWasAheadHoldsNoMailUp(t *testing.T) {
	t.Parallel()
	r := begin(t, func(p *machine) notify.Notice { p.clock.advance(day); return p.linkNotice(1) }, true)
	r.do(tried(refusal(mail.ErrQuota)))
	r.clock.advance(-day)
	r.provider.fail = nil
	if again := handle(t, r.sender, r.put(r.linkNotice(2))); again != 0 || len(r.provider.taken) != 1 {
		t.Errorf("another mail waits for %v", again)
	}
}

func TestFeedbackMayComeInAnyOrder(t *testing.T) {
	const said = "bounced: smtp; 550 5.1.1 <a***@example.com> unknown"
	bounce := reported(notify.Bounced, "smtp; 550 5.1.1 <ann@example.com> unknown")
	delivery, complaint := reported(notify.Delivered, ""), reported(notify.Complained, "")
	lost, long := reported(notify.Undelivered, "phone is off"), reported(notify.Bounced, strings.Repeat("so ", 5000)+"\r\n")
	later := after(time.Minute)
	delivered, failed := isSent("", 1, 1), isFailed("", 1)
	delivered.delivered, failed.taken = time.Minute, 1
	saying := func(w want, says string) want { w.says = says; return w }
	complained := saying(failed, "complained").suppressing(notify.AddressComplained)
	bounced := saying(failed, said).suppressing(notify.AddressBounced)
	both := bounced
	complained.delivered, both.delivered = time.Minute, time.Minute
	tell(t, []story{
		{"a delivery", link, steps{sent, later, delivery}, delivered},
		{"a delivery reported twice", link, steps{sent, later, delivery, later, delivery}, delivered},
		{"a bounce", link, steps{sent, later, bounce}, bounced},
		{"a bounce after a delivery", link, steps{sent, later, delivery, later, bounce}, both},
		{"a complaint", link, steps{sent, later, delivery, complaint}, complained},
		{"a complaint after a bounce", link, steps{sent, bounce, complaint}, bounced},
		{"a message that was lost", link, steps{sent, lost}, saying(failed, "not delivered: phone is off")},
		{"a bounce of what was given up", link, steps{refused, bounce}, isGivenUp(permanent, 1)},
		{"a bounce before it was sent, which must come again", link, steps{bounce}, isQueued("", 0, 0)},
		{"a bounce with a long detail, which is cut", link, steps{sent, long}, saying(bounced, "bounced: "+strings.Repeat("so ", 100))},
		{"a bounce of a PIN, which is not known any more", pin, steps{sent, bounce}, want{taken: 1}},
	})
}

func TestStatesKeepTheOrderAndLeaveOutUnknownNotices(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	var ids, want []string
	for i := range 70 { // more than one call takes
		ids = append(ids, fmt.Sprintf("nobody-%d", i))
		if i%2 == 0 {
			n := p.put(p.linkNotice(int64(i + 1)))
			ids, want = append(ids, n.ID), append(want, n.ID)
		}
	}
	all, err := notify.States(t.Context(), p.table, ids)
	must(t, err)
	expect.Equal(t, "the notices", strings.Join(idsOf(all), " "), strings.Join(want, " "))
}

func idsOf(all []notify.Notice) (ids []string) {
	for _, n := range all {
		ids = append(ids, n.ID)
	}
	return ids
}

// torn is a table whose GetMany reads the partitions with a prefix last, and calls between before that.
type torn struct {
	table.Table
	last    string
	between func()
	reads   []int // how many items each call reads
}

func (t *torn) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	t.reads = append(t.reads, len(keys))
	before, err := t.Table.GetMany(ctx, keys...)
	if t.between == nil || err != nil {
		return before, err
	}
	t.between()
	t.between = nil
	after, err := t.Table.GetMany(ctx, keys...)
	for i, key := range keys {
		if strings.HasPrefix(key.PK, t.last) {
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
		reads []int
	}{
		"it is sent":     {sent, notify.Sent, []int{9, 3}},
		"it is given up": {refused, notify.Failed, []int{9, 3}},
		"it stays":       {func(*run) {}, notify.Queued, []int{9}},
	} {
		r := begin(t, link, true)
		before, behind := r.put(r.linkNotice(2)), r.put(r.linkNotice(3))
		handle(t, r.another(r.table), before)
		tab := &torn{Table: r.table, last: "outbox#", between: func() { tt.moves(r) }}
		all, err := notify.States(t.Context(), tab, []string{before.ID, r.notice.ID, behind.ID})
		if err != nil || len(all) != 3 || all[1].ID != r.notice.ID || all[1].State() != tt.want {
			t.Errorf("%s: got %+v, %v", name, all, err)
		}
		expect.Equal(t, name+": what it reads", tab.reads, tt.reads)
	}
	for _, last := range []string{"outbox#", "notice#"} {
		r := begin(t, link, true)
		tab := &torn{Table: r.table, last: last, between: func() { sent(r) }}
		must(t, notify.Record(t.Context(), tab, start(), notify.Feedback{ID: r.notice.ID, Kind: notify.Bounced}))
		expect.Equal(t, "the state after a bounce whose recording reads last "+last, r.state(), notify.Failed)
	}
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
		"one that was given up":        {0, month, refused},
	} {
		r := begin(t, lasting(tt.expires), true)
		tt.end(r)
		for _, at := range []time.Duration{tt.keeps - time.Second, tt.keeps + time.Second} {
			_, err := r.table.DeleteExpired(t.Context(), start().Add(at))
			must(t, err)
			expect.Equal(t, fmt.Sprintf("%s: it is there after %v", name, at), r.state() != "", (at < tt.keeps))
		}
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
