package notify_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// flaky is a provider that fails with an error that the test sets.
type flaky struct {
	fail error

	mu    sync.Mutex
	taken []mail.Message
}

func (f *flaky) Send(_ context.Context, m mail.Message) (string, error) {
	if f.fail != nil {
		return "", f.fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = append(f.taken, m)
	return "provider-" + m.ID, nil
}

func handle(t *testing.T, s *notify.Sender, n notify.Notice) time.Duration {
	t.Helper()
	again, err := s.Handle(t.Context(), n.Key())
	must(t, err)
	return again
}

// toTheEnd handles a notice whenever it is due, until nothing is left to do.
func (p *machine) toTheEnd(t *testing.T, s *notify.Sender, n notify.Notice) (tries int, waited time.Duration) {
	t.Helper()
	begin := p.clock.now()
	for again := handle(t, s, n); again > 0; again = handle(t, s, n) {
		p.clock.advance(again)
		tries++
	}
	return tries + 1, p.clock.now().Sub(begin)
}

func TestNoticeIsSentOnceEvenIfItsMessageComesOften(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	f := &flaky{}
	s := p.sender(t, f)
	for range 5 {
		if again := handle(t, s, n); again != 0 {
			t.Errorf("again after %v", again)
		}
	}
	if len(f.taken) != 1 || f.taken[0].ID != n.ID {
		t.Errorf("taken: %+v", f.taken)
	}
	if got := p.state(t, n.ID); got.State() != notify.Sent || got.Provider != "provider-"+n.ID || p.waiting(t) != 0 {
		t.Errorf("state: %+v", got)
	}
}

func TestMissingNoticeIsNotSent(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	f := &flaky{}
	n := p.linkNotice(1).Op(start(), "rolled-back").Value.(notify.Notice)
	if again := handle(t, p.sender(t, f), n); again != 0 || len(f.taken) != 0 || p.waiting(t) != 0 {
		t.Errorf("again after %v, %d taken", again, len(f.taken))
	}
}

// TestNoticeThatWaitedForDaysIsNotGivenUpAtItsFirstTry is about a notice that waited for an
// operator to set an address to send from, or for the sweep to find it.
func TestNoticeThatWaitedForDaysIsNotGivenUpAtItsFirstTry(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	p.clock.advance(3 * 24 * time.Hour)
	busy := p.sender(t, &flaky{fail: errors.New("too many requests")})
	if tries, waited := p.toTheEnd(t, busy, n); waited < 20*time.Minute || waited > 3*time.Hour || p.state(t, n.ID).State() != notify.Failed {
		t.Errorf("given up after %v and %d tries", waited, tries)
	}
}

func TestMessageThatComesTooEarlyIsDelayed(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	down := p.sender(t, &flaky{fail: errors.New("down")})
	if again := handle(t, down, n); again != 750*time.Millisecond {
		t.Errorf("a failed try is due again after %v", again)
	}
	f := &flaky{}
	s := p.sender(t, f)
	p.clock.advance(250 * time.Millisecond)
	if again := handle(t, s, n); again != 500*time.Millisecond || len(f.taken) != 0 {
		t.Errorf("too early: again after %v, %d taken", again, len(f.taken))
	}
	p.clock.advance(500 * time.Millisecond)
	if again := handle(t, s, n); again != 0 || len(f.taken) != 1 {
		t.Errorf("in time: again after %v, %d taken", again, len(f.taken))
	}
}

func TestMessageOfAHeldNoticeIsDelayedUntilTheLeaseEnds(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	f := &flaky{}
	s := p.sender(t, f)
	claim(t, s, n)
	p.clock.advance(time.Second)
	if again := handle(t, s, n); again != notify.Lease-time.Second || len(f.taken) != 0 {
		t.Errorf("again after %v, %d taken", again, len(f.taken))
	}
	p.clock.advance(notify.Lease - time.Second)
	if again := handle(t, s, n); again != 0 || len(f.taken) != 1 {
		t.Errorf("after the lease: again after %v, %d taken", again, len(f.taken))
	}
}

func TestMessageIsDelayedIfAnotherSenderClaimsFirst(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	f := &flaky{}
	beside := overtaken{p.table, func() {
		if _, err := p.sender(t, nil).Claim(t.Context(), n); err != nil {
			t.Error(err)
		}
	}}
	if again := handle(t, p.senderOn(t, beside, f, nil), n); again != notify.Lease || len(f.taken) != 0 {
		t.Errorf("again after %v, %d taken", again, len(f.taken))
	}
}

func TestNoticeIsSentOnceIfManyFunctionsGetItsMessage(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	f := &flaky{}
	const total = 20
	var all []notify.Notice
	for i := range total {
		all = append(all, p.put(t, p.linkNotice(int64(i+1))))
	}
	var wg sync.WaitGroup
	for worker := range 6 {
		s := p.senderOn(t, p.open(t), f, nil)
		order := rand.New(rand.NewPCG(uint64(worker), 1)).Perm(total)
		wg.Go(func() {
			for _, i := range order {
				if again, err := s.Handle(t.Context(), all[i].Key()); err != nil || again < 0 || again > notify.Lease {
					t.Errorf("again after %v, %v", again, err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, m := range f.taken {
		if seen[m.ID] {
			t.Errorf("%s was sent twice", m.ID)
		}
		seen[m.ID] = true
	}
	if len(seen) != total || p.waiting(t) != 0 {
		t.Errorf("%d of %d sent, %d waiting", len(seen), total, p.waiting(t))
	}
}

func TestUnreadableNoticeGoesToTheFailedNotices(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	key := table.Key{PK: notify.Partitions(notify.OutboxPrefix)[0], SK: "0000000000000-poison"}
	must(t, p.table.Write(t.Context(), table.Put(key, odd{V: 1, ID: key.SK, Tries: "many"})))
	s := p.sender(t, nil)
	if again, err := s.Handle(t.Context(), key); err != nil || again != 0 {
		t.Errorf("again after %v, %v", again, err)
	}
	if failed := p.failed(t); len(failed) != 1 || failed[0].ID != key.SK || p.waiting(t) != 0 {
		t.Errorf("failed: %+v", failed)
	}
}

func TestNoticeStaysIfTheTableCannotBeReached(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	f := &flaky{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.sender(t, f).Handle(ctx, n.Key()); err == nil {
		t.Error("no error")
	}
	if got, there := p.stored(t, n); !there || got != n || len(f.taken) != 0 {
		t.Errorf("stored: %+v", got)
	}
}

func TestOnlyNoticesDueForAnHourAreOverdue(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	lost := p.put(t, p.linkNotice(1))
	p.clock.advance(30 * time.Minute)
	p.put(t, p.linkNotice(2))
	held := p.put(t, p.linkNotice(3))
	must(t, p.table.Write(t.Context(), table.Update(held.Key()).Set("notBefore", start().Add(2*time.Hour).UnixMilli())))
	poison := table.Key{PK: notify.Partitions(notify.OutboxPrefix)[0], SK: "0000000000000-poison"}
	must(t, p.table.Write(t.Context(), table.Put(poison, odd{V: 1})))
	var s reminded
	if _, err := notify.Remind(t.Context(), p.table, &s, start().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(s.sent) != 2 || !slices.Contains(s.sent, notify.Pointer(lost.Key(), "mail")) || !slices.Contains(s.sent, notify.Pointer(poison, "")) {
		t.Errorf("pointed at %v", s.sent)
	}
}

// unsettled is a table that accepts only claims.
type unsettled struct{ table.Table }

func (u unsettled) Write(ctx context.Context, ops ...table.Op) error {
	if ops[0].Kind == table.KindUpdate && len(ops[0].Conds) == 2 { // a claim
		return u.Table.Write(ctx, ops...)
	}
	return table.ErrBusy
}

func TestNoticeStaysClaimedIfItsOutcomeCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{
		"when it was sent": nil, "when it failed for now": errors.New("down"), "when it failed for good": notify.ErrPermanent, "when it was over": notify.ErrObsolete,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, n := withLink(t)
			s := p.senderOn(t, unsettled{p.table}, &flaky{fail: fail}, nil)
			if _, err := s.Handle(t.Context(), n.Key()); !errors.Is(err, table.ErrBusy) {
				t.Errorf("got %v", err)
			}
			if got := p.state(t, n.ID); got.State() != notify.Sending || got.NotBefore != start().Add(notify.Lease).UnixMilli() {
				t.Errorf("it is %+v", got)
			}
		})
	}
}
