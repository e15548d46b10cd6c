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
		{name: "a link by mail", notice: link, steps: steps{sent}, want: once},
		{name: "a link by text message", notice: text, steps: steps{sent}, want: once},
		{name: "a PIN, which leaves nothing", notice: pin, steps: steps{sent}, want: want{taken: 1}},
		{name: "another time", notice: link, steps: steps{sent, sent}, want: once},
		{
			name:   "a PIN until it expires",
			notice: pin,
			steps:  steps{after(15*time.Minute - time.Second), sent},
			want:   want{taken: 1},
		},
		{name: "one from a clock that was ahead", notice: ahead(link), steps: steps{after(-year), sent}, want: once},
		{
			name:   "a text message, whatever mails did",
			notice: text,
			steps:  steps{suppress(notify.AddressBounced), sent},
			want:   once.suppressing(notify.AddressBounced),
		},
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
		{name: "a refused mail", notice: link, steps: steps{refused}, want: isGivenUp(permanent, 1)},
		{
			name:   "a refused text message",
			notice: text,
			steps:  steps{tried(notify.ErrTextRefused)},
			want:   givenUp("sms: refused for good"),
		},
		{
			name:   "a refused PIN, which only an operator may see",
			notice: pin,
			steps:  steps{refused},
			want:   isGivenUp(permanent, 1),
		},
		{
			name:   "a mail without a provider",
			notice: link,
			steps:  steps{withoutProviders, sent},
			want:   givenUp("no provider is configured for the channel \"mail\""),
		},
		{
			name:   "a mail to an address that bounced",
			notice: link,
			steps:  steps{suppress(notify.AddressBounced), sent},
			want:   bounced,
		},
		{name: "a mail whose link has expired", notice: link, steps: steps{after(7 * day), sent}, want: obsolete(over)},
		{name: "a mail whose file was removed", notice: link, steps: steps{removed, sent}, want: obsolete(gone)},
		{
			name:   "a mail whose file's own time is over",
			notice: link,
			steps:  steps{outdated, sent},
			want:   obsolete(outlived),
		},
		{name: "a PIN that has expired", notice: pin, steps: steps{after(15 * time.Minute), sent}, want: want{}},
	})
}

func TestNoticeThatFailsForNowIsTriedAgain(t *testing.T) {
	once := isQueued("down", 1, first)
	tell(t, []story{
		{name: "after a while", notice: link, steps: steps{down}, want: once},
		{
			name:   "but not too early",
			notice: link,
			steps:  steps{down, after(first / 3), sent},
			want:   isQueued("down", 1, first*2/3),
		},
		{name: "in time", notice: link, steps: steps{down, waited, sent}, want: isSent("down", 2, 1)},
	})
}

func TestNoticeOfASenderThatDiesIsTriedAgainWhenItsLeaseEnds(t *testing.T) {
	ended := after(notify.Lease)
	early := after(notify.Lease - time.Millisecond)
	tell(t, []story{
		{
			name:   "the lease has not ended",
			notice: link,
			steps:  steps{died(errDown), early, sent},
			want:   isSending(1, time.Millisecond),
		},
		{name: "the lease has ended", notice: link, steps: steps{died(errDown), ended, sent}, want: isSent("", 2, 1)},
		{
			name:   "the message goes out twice if the provider had taken it",
			notice: link,
			steps:  steps{died(nil), ended, sent},
			want:   isSent("", 2, 2),
		},
		{name: "and fails", notice: link, steps: steps{died(errDown), ended, down}, want: isQueued("down", 2, 2*first)},
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
		{
			name:   "one claims before the other",
			notice: link,
			steps:  steps{beside(1, died(errDown), sent)},
			want:   isSending(1, notify.Lease),
		},
		{
			name:   "one sends before the other claims",
			notice: link,
			steps:  steps{beside(1, sentByAnother, sent)},
			want:   first,
		},
		{name: "one has sent after its lease", notice: link, steps: steps{beside(2, late, sent)}, want: taken},
		{
			name:   "one has failed for now after its lease",
			notice: link,
			steps:  steps{beside(2, late, down)},
			want:   isSending(2, time.Millisecond),
		},
		{
			name:   "one has failed for good after its lease",
			notice: link,
			steps:  steps{beside(2, late, refused)},
			want:   isSending(2, 0),
		},
		{
			name:   "one had nothing to send after its lease",
			notice: link,
			steps:  steps{removed, beside(2, late, sent)},
			want:   isSending(2, 0),
		},
	})
}

// TestRetriesBackOffToAnHour sets how often the notice was tried before.
func TestRetriesBackOffToAnHour(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[float64][]time.Duration{
		0: {
			500 * time.Millisecond, time.Second, 2 * time.Second, 1024 * time.Second, 30 * time.Minute,
			30 * time.Minute,
		},
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
		"after a day": {
			notice:     link,
			fail:       errDown,
			tries:      30,
			mostTries:  50,
			waited:     day,
			mostWaited: day + time.Hour,
		},
		"after days in the outbox": {
			notice:     link,
			before:     steps{after(3 * day)},
			fail:       errDown,
			tries:      12,
			mostTries:  12,
			waited:     least,
			mostWaited: most,
		},
		"from a clock that was ahead": {
			notice:     ahead(link),
			before:     steps{after(-year)},
			fail:       errDown,
			tries:      12,
			mostTries:  12,
			waited:     least,
			mostWaited: most,
		},
		"after an operator's retry": {
			notice:     link,
			before:     steps{refused, after(2 * day), retried(nil)},
			fail:       errDown,
			tries:      30,
			mostTries:  50,
			waited:     day,
			mostWaited: day + time.Hour,
		},
		"after a quota": {
			notice:     link,
			before:     steps{times(48, tried(quota), waited)},
			fail:       errDown,
			tries:      12,
			mostTries:  12,
			waited:     least,
			mostWaited: most,
		},
		"without a quota": {
			notice:     receipt,
			before:     steps{after(month)},
			fail:       quota,
			tries:      72,
			mostTries:  maxReceives / 2,
			waited:     3 * day,
			mostWaited: 3*day + time.Hour,
		},
		"without a quota, retried": {
			notice:     receipt,
			before:     steps{tried(quota), after(4 * day), retried(nil)},
			fail:       quota,
			tries:      72,
			mostTries:  maxReceives / 2,
			waited:     3 * day,
			mostWaited: 3*day + time.Hour,
		},
		"a code without a rate": {
			notice:     pin,
			fail:       rate,
			tries:      200,
			mostTries:  1000,
			waited:     15 * time.Minute,
			mostWaited: 15*time.Minute + 4*time.Second,
		},
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
			if failed := r.failed(); r.waiting() != 0 ||
				r.notice.Kind != notify.PIN && (len(failed) != 1 || failed[0].LastError != tt.fail.Error()) {
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
		{name: "a rate", notice: link, steps: steps{tried(rate)}, want: held(mail.ErrRate, first)},
		{name: "a rate, for long", notice: link, steps: steps{long, tried(rate)}, want: held(mail.ErrRate, longest)},
		{
			name:   "a rate, for long, then another failure",
			notice: link,
			steps:  steps{long, down},
			want:   isQueued("down", 1, first),
		},
		{
			name:   "a rate, for long, then none",
			notice: link,
			steps:  steps{long, sent},
			want:   isSent(mail.ErrRate.Error(), 1, 1),
		},
		{name: "a quota", notice: link, steps: steps{tried(quota)}, want: held(mail.ErrQuota, longest)},
		{
			name:   "a rate, for a code, which is tried every few seconds",
			notice: pin,
			steps:  steps{long, tried(rate)},
			want:   held(mail.ErrRate, 4*first),
		},
		{name: "a quota, for a code", notice: pin, steps: steps{tried(quota)}, want: held(mail.ErrQuota, first)},
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
		if n.State() != notify.Queued ||
			n.LastError != mail.ErrQuota.Error() ||
			n.Tried() != 0 ||
			n.Held != start().Unix() {
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
	lost, long := reported(
		notify.Undelivered,
		"phone is off",
	), reported(notify.Bounced, strings.Repeat("so ", 5000)+"\r\n")
	later := after(time.Minute)
	delivered, failed := isSent("", 1, 1), isFailed("", 1)
	delivered.delivered, failed.taken = time.Minute, 1
	saying := func(w want, says string) want { w.says = says; return w }
	complained := saying(failed, "complained").suppressing(notify.AddressComplained)
	bounced := saying(failed, said).suppressing(notify.AddressBounced)
	both := bounced
	complained.delivered, both.delivered = time.Minute, time.Minute
	tell(t, []story{
		{name: "a delivery", notice: link, steps: steps{sent, later, delivery}, want: delivered},
		{
			name:   "a delivery reported twice",
			notice: link,
			steps:  steps{sent, later, delivery, later, delivery},
			want:   delivered,
		},
		{name: "a bounce", notice: link, steps: steps{sent, later, bounce}, want: bounced},
		{
			name:   "a bounce after a delivery",
			notice: link,
			steps:  steps{sent, later, delivery, later, bounce},
			want:   both,
		},
		{name: "a complaint", notice: link, steps: steps{sent, later, delivery, complaint}, want: complained},
		{name: "a complaint after a bounce", notice: link, steps: steps{sent, bounce, complaint}, want: bounced},
		{
			name:   "a message that was lost",
			notice: link,
			steps:  steps{sent, lost},
			want:   saying(failed, "not delivered: phone is off"),
		},
		{
			name:   "a bounce of what was given up",
			notice: link,
			steps:  steps{refused, bounce},
			want:   isGivenUp(permanent, 1),
		},
		{
			name:   "a bounce before it was sent, which must come again",
			notice: link,
			steps:  steps{bounce},
			want:   isQueued("", 0, 0),
		},
		{
			name:   "a bounce with a long detail, which is cut",
			notice: link,
			steps:  steps{sent, long},
			want:   saying(bounced, "bounced: "+strings.Repeat("so ", 100)),
		},
		{
			name:   "a bounce of a PIN, which is not known any more",
			notice: pin,
			steps:  steps{sent, bounce},
			want:   want{taken: 1},
		},
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
		"it is sent":     {moves: sent, want: notify.Sent, reads: []int{9, 3}},
		"it is given up": {moves: refused, want: notify.Failed, reads: []int{9, 3}},
		"it stays":       {moves: func(*run) {}, want: notify.Queued, reads: []int{9}},
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
		"as the file":                  {expires: 10 * day, keeps: 10 * day, end: sent},
		"a file that goes tomorrow":    {expires: day, keeps: 3 * day, end: sent},
		"a file that stays for a year": {expires: year, keeps: 90 * day, end: sent},
		"a file that never expires":    {keeps: 90 * day, end: sent},
		"one that was given up":        {keeps: month, end: refused},
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
