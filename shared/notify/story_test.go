package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// story is a test of one notice: what happens to it, and how it stands in the end.
type story struct {
	name   string
	notice func(*machine) notify.Notice
	steps  steps
	want   want
}

type steps []func(*run)

// want is how a notice stands. What follows from that is checked too.
type want struct {
	state      notify.State  // empty if nothing is known of it
	says       string        // its last error
	tries      int64         // those that count
	taken      int           // messages that the provider took
	again      time.Duration // how long the last try put it off
	operator   bool          // an operator sees it among those that were given up
	delivered  time.Duration // after the start
	suppressed notify.SuppressReason
}

// The ways in which a notice may stand.

func isQueued(says string, tries int64, again time.Duration) want {
	return want{state: notify.Queued, says: says, tries: tries, again: again}
}

func isSending(tries int64, again time.Duration) want {
	return want{state: notify.Sending, tries: tries, again: again}
}

func isSent(says string, tries int64, taken int) want {
	return want{state: notify.Sent, says: says, tries: tries, taken: taken}
}

func isFailed(says string, tries int64) want {
	return want{state: notify.Failed, says: says, tries: tries}
}

// isGivenUp is isFailed for an operator to see.
func isGivenUp(says string, tries int64) want {
	return want{state: notify.Failed, says: says, tries: tries, operator: true}
}

func (w want) suppressing(reason notify.SuppressReason) want {
	w.suppressed = reason
	return w
}

// tell tells each story twice: a lane finds the notice, or a message brings it.
func tell(t *testing.T, all []story) {
	t.Parallel()
	for _, tt := range all {
		for by, message := range map[string]bool{"found by a lane": false, "brought by a message": true} {
			t.Run(tt.name+", "+by, func(t *testing.T) {
				t.Parallel()
				r := begin(t, tt.notice, message)
				for _, step := range tt.steps {
					r.do(step)
				}
				r.check(tt.want)
			})
		}
	}
}

func link(p *machine) notify.Notice { return p.linkNotice(1) }

func receipt(p *machine) notify.Notice { return p.receiptNotice(1) }

func pin(p *machine) notify.Notice { return p.pinNotice() }

// text is link as a text message.
func text(p *machine) notify.Notice {
	n := p.linkNotice(1)
	n.Channel, n.To = files.SMS, "+393331234567"
	return n
}

// run is one notice with its provider and its table.
type run struct {
	*machine
	notice   notify.Notice
	provider *provider
	calls    *double
	sender   *notify.Sender
	message  bool
	again    time.Duration
	last     notify.State
	ended    map[notify.State]int // how often a link came into each state
	endedAt  time.Time
}

func begin(t *testing.T, notice func(*machine) notify.Notice, message bool) *run {
	t.Helper()
	p := newMachine(t)
	r := &run{
		machine:  p,
		notice:   p.put(notice(p)),
		provider: &provider{},
		calls:    &double{Table: p.table},
		message:  message,
	}
	r.last, r.ended = notify.Queued, map[notify.State]int{}
	r.sender = r.another(r.calls)
	return r
}

// another returns another sender through the same provider.
func (r *run) another(tab table.Table) *notify.Sender {
	s := r.machine.sender(tab, r.provider.take)
	s.OnEnd = []notify.OnEnd{count}
	return s
}

func (r *run) state() notify.State {
	if n := r.find(r.notice.ID); n.ID != "" {
		return n.State()
	}
	return ""
}

func (r *run) do(step func(*run)) {
	r.Helper()
	step(r)
	if now := r.state(); now != r.last {
		r.last, r.endedAt = now, r.clock.now()
		if r.notice.Kind == notify.Link {
			r.ended[now]++
		}
	}
}

// countKey is where count counts how often a notice has ended in a state.
func countKey(n notify.Notice, s notify.State) table.Key {
	return table.Key{PK: "ended", SK: n.ID + " " + string(s)}
}

// count is a notify.OnEnd.
func count(n notify.Notice, s notify.State) []table.Op {
	return []table.Op{table.Update(countKey(n, s)).Add("times", 1)}
}

// check checks how the notice stands, and that its parts agree.
func (r *run) check(w want) {
	r.Helper()
	n, state := r.find(r.notice.ID), r.state()
	operator := len(r.failed()) == 1
	got := want{state, n.LastError, n.Tried(), len(r.provider.taken), r.again, operator, 0, ""}
	got.suppressed = r.suppressed(r.notice.To)
	if n.Delivered != 0 {
		got.delivered = time.UnixMilli(n.Delivered).Sub(start())
	}
	if got != w {
		r.Errorf("got  %+v\nwant %+v", got, w)
	}
	if waits := r.waiting() == 1; waits != (state == notify.Queued || state == notify.Sending) {
		r.Errorf("it is in the outbox: %v", waits)
	}
	failed, sent := state == notify.Failed, state == notify.Sent
	if (n.FailedAt != 0) != failed || failed && n.FailedAt != r.endedAt.UnixMilli() {
		r.Errorf("it failed at %v, but is stored as %+v", r.endedAt, n)
	}
	if sent && (n.SentAt != r.endedAt.UnixMilli() || n.Provider != "provider-"+n.ID) {
		r.Errorf("it was sent at %v, but is stored as %+v", r.endedAt, n)
	}
	if log := r.log.String(); operator && !strings.Contains(log, "level=ERROR") {
		r.Errorf("the log: %s", log)
	}
	for _, end := range []notify.State{notify.Sent, notify.Failed} {
		var counted struct{ Times int }
		_ = r.table.Get(r.Context(), countKey(r.notice, end), &counted)
		expect.Equal(r.T, fmt.Sprint("the count of notices that were ", end), counted.Times, r.ended[end])
	}
}

// try tries what is due.
func (r *run) try() (again time.Duration) {
	if r.message {
		return handle(r.T, r.sender, r.notice)
	}
	if _, next := r.pass(r.sender); !next.IsZero() {
		return max(time.Millisecond, next.Sub(r.clock.now()))
	}
	return 0
}

// The steps.

// tried is a try; outcome is the provider's answer.
func tried(outcome error) func(*run) {
	return func(r *run) {
		r.provider.fail = outcome
		r.again = r.try()
	}
}

func sent(r *run) { tried(nil)(r) }

func down(r *run) { tried(errDown)(r) }

func refused(r *run) { tried(mail.ErrPermanent)(r) }

// sentByAnother is a try of another sender.
func sentByAnother(r *run) {
	r.provider.fail = nil
	handle(r.T, r.another(r.table), r.notice)
}

// died is a try of another sender that never stores its outcome.
func died(outcome error) func(*run) {
	return func(r *run) {
		r.provider.fail = outcome
		weak := &double{Table: r.table, write: func(ops []table.Op) error {
			if ops[0].Kind == table.KindUpdate && len(ops[0].Conds) == 2 { // a claim
				return nil
			}
			return table.ErrBusy
		}}
		if _, err := r.another(weak).Handle(r.Context(), r.notice.Key()); !errors.Is(err, table.ErrBusy) {
			r.Errorf("a sender that dies gets %v", err)
		}
	}
}

func after(d time.Duration) func(*run) { return func(r *run) { r.clock.advance(d) } }

// waited advances the clock to the next try.
func waited(r *run) { r.clock.advance(r.again) }

func times(n int, all ...func(*run)) func(*run) {
	return func(r *run) {
		for range n {
			for _, step := range all {
				r.do(step)
			}
		}
	}
}

// removed removes the file.
func removed(r *run) {
	must(r.T, r.table.Write(r.Context(), table.Delete(files.Key(r.notice.Area, r.notice.Owner, r.notice.File))))
}

// outdated ends the file's own time.
func outdated(r *run) {
	key := files.Key(r.notice.Area, r.notice.Owner, r.notice.File)
	must(r.T, r.table.Write(r.Context(), table.Update(key).Set("expires", r.clock.now().Unix())))
}

func suppress(reason notify.SuppressReason) func(*run) {
	return func(r *run) {
		must(r.T, r.table.Write(r.Context(), notify.Suppress(r.notice.To, reason, "", r.clock.now())))
	}
}

// withoutProviders takes the providers away.
func withoutProviders(r *run) { r.sender.Couriers = nil }

// reported is a provider's feedback. While the notice is in the outbox, it is refused for now.
func reported(kind notify.FeedbackKind, detail string) func(*run) {
	return func(r *run) {
		f := notify.Feedback{ID: r.notice.ID, Kind: kind, Detail: detail}
		err := notify.Record(r.Context(), r.calls, r.clock.now(), f, count)
		if errors.Is(err, notify.ErrInOutbox) != (r.waiting() > 0) ||
			err != nil && !errors.Is(err, notify.ErrInOutbox) {
			r.Errorf("feedback on a notice that is %s: %v", r.last, err)
		}
	}
}

// retried and cancelled are what an operator does; want is the error that keeps the notice as it is.
func retried(want error) func(*run) {
	return func(r *run) {
		r.operated(want, notify.Retry(r.Context(), r.calls, r.clock.now(), r.notice.ID))
	}
}

func cancelled(want error) func(*run) {
	return func(r *run) {
		r.operated(want, notify.Cancel(r.Context(), r.calls, r.clock.now(), r.notice.ID, count))
	}
}

func (r *run) operated(want, err error) {
	expect.Err(r.T, "what an operator does", err, want)
}

// reminded looks for overdue notices.
func reminded(pointed, ended int) func(*run) {
	return func(r *run) {
		var topics relayed
		got, err := notify.Remind(r.Context(), r.calls, &topics, r.clock.now(), count)
		if want := (notify.RemindReport{Pointed: pointed, Ended: ended}); err != nil ||
			got != want ||
			len(topics.sent[notify.NoticesTopic]) != pointed {
			r.Errorf("%+v by %v, %v", got, topics.sent, err)
		}
	}
}

// beside lets something happen just before one of the writes of a step.
func beside(write int, happens, step func(*run)) func(*run) {
	return func(r *run) {
		left := write
		r.calls.write = func([]table.Op) error {
			if left--; left == 0 {
				happens(r)
			}
			return nil
		}
		if step(r); left > 0 {
			r.Error("the step ended earlier")
		}
	}
}

// provider is a Courier that takes messages, or refuses them with an error that the test sets.
type provider struct {
	mu    sync.Mutex
	fail  error
	tries int
	taken []string // the IDs
}

func (p *provider) take(_ context.Context, _ *notify.Sender, n notify.Notice) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.fail != nil {
		return "", p.fail
	}
	p.taken = append(p.taken, n.ID)
	return "provider-" + n.ID, nil
}

// double is a table that does what a test wants beside its calls.
type double struct {
	table.Table
	write func(ops []table.Op) error // before each write; an error refuses it
	read  func()                     // after the next read of an item
	query func(table.Query)          // after each query
}

func (d *double) Get(ctx context.Context, key table.Key, into any) error {
	err := d.Table.Get(ctx, key, into)
	if read := d.read; read != nil {
		d.read = nil
		read()
	}
	return err
}

func (d *double) Query(ctx context.Context, q table.Query) (table.Page, error) {
	page, err := d.Table.Query(ctx, q)
	if d.query != nil {
		d.query(q)
	}
	return page, err
}

func (d *double) Write(ctx context.Context, ops ...table.Op) error {
	if d.write != nil {
		if err := d.write(ops); err != nil {
			return err
		}
	}
	return d.Table.Write(ctx, ops...)
}

func handle(t *testing.T, s *notify.Sender, n notify.Notice) time.Duration {
	t.Helper()
	again, err := s.Handle(t.Context(), n.Key())
	must(t, err)
	return again
}

// find returns what is known of one notice.
func (p *machine) find(id string) notify.Notice {
	p.Helper()
	all, err := notify.States(p.Context(), p.table, []string{id})
	must(p, err)
	return append(all, notify.Notice{})[0]
}

func (p *machine) suppressed(address string) notify.SuppressReason {
	p.Helper()
	e, _, err := notify.Suppressed(p.Context(), p.table, address)
	must(p, err)
	return e.Refused
}
