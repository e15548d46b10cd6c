package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ferry/shared/table"
)

const (
	// parallel is how many notices of each channel are delivered at once.
	parallel = 4
	// deliveryTimeout bounds one delivery.
	deliveryTimeout = 30 * time.Second
	// grace is how long a delivery goes on after its context ended: one that
	// is cut off may arrive and be sent again.
	grace = 5 * time.Second
	// settleTimeout bounds writing down how a delivery went.
	settleTimeout = 10 * time.Second

	firstRetry = time.Second
	lastRetry  = time.Hour
	giveUp     = 24 * time.Hour
	// leastTries are made however old a notice is. It may have waited for days
	// for its first, and they take about half an hour.
	leastTries = 12

	// poll is how often the outbox is read without a reason: other processes
	// put notices in it too.
	poll = 30 * time.Second
	// stint is how long Run waits for places for what it has read.
	stint = time.Second
	// forever is longer than any process lives.
	forever = time.Duration(math.MaxInt64)
	// breather is the least time between two passes that nobody asked for.
	breather = 100 * time.Millisecond
)

// Wake rouses a Sender's Run. Any number of signals before it comes to look
// count as one.
type Wake chan struct{}

// NewWake returns a Wake.
func NewWake() Wake { return make(Wake, 1) }

// Signal never blocks.
func (w Wake) Signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Run sends what is due until the context ends, and lets deliveries under way
// end for a few seconds. It looks again when the next notice is due, when
// woken, and every 30 s in any case. A delivery that takes long takes one of
// its channel's places, and holds up nothing else.
func (s *Sender) Run(ctx context.Context, wake <-chan struct{}) {
	r := s.newRound()
	defer r.under.Wait()
	for {
		err := r.look(ctx, stint)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Log.Error("sending notices", "error", err)
		}
		r.pause(ctx, wake)
		if ctx.Err() != nil {
			return
		}
	}
}

// pause waits until there is a reason to look again.
func (r *round) pause(ctx context.Context, wake <-chan struct{}) {
	for {
		timer := time.NewTimer(r.sender.pause(r.upcoming()))
		select {
		case <-r.ended:
			timer.Stop()
			continue // what was not sent may be due before all else
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
		return
	}
}

func (s *Sender) pause(next time.Time) time.Duration {
	if next.IsZero() {
		return poll
	}
	return max(breather, min(poll, next.Sub(s.Now())))
}

// SendDue delivers the notices that are due, and returns how many were sent
// and when the next one is due, zero if none is known of. An error is the
// table's: what was claimed is tried again when its lease ends, 2 minutes later.
func (s *Sender) SendDue(ctx context.Context) (sent int, next time.Time, err error) {
	r := s.newRound()
	err = r.look(ctx, forever)
	r.under.Wait()
	return r.sent, r.next, errors.Join(err, r.failures())
}

// round is a look at the outbox, and another, and the deliveries that come of
// them. They may outlast the look.
type round struct {
	sender *Sender
	under  sync.WaitGroup // deliveries
	ended  Wake           // one that was not sent
	mails  chan struct{}  // a place for each delivery at once
	others chan struct{}

	mu   sync.Mutex
	sent int
	next time.Time
	errs []error
}

func (s *Sender) newRound() *round {
	return &round{sender: s, ended: NewWake(), mails: make(chan struct{}, parallel), others: make(chan struct{}, parallel)}
}

// look reads what is due and begins to deliver it, for no longer than a while
// if there are no places: what has come since gets its turn then. An error is
// the table's, be it of a delivery of an earlier look.
func (r *round) look(ctx context.Context, while time.Duration) error {
	r.mu.Lock()
	r.next = time.Time{} // before the outbox is read: deliveries that end meanwhile add to it
	r.mu.Unlock()
	due, next, err := r.sender.waiting(ctx)
	if err != nil {
		return errors.Join(err, r.failures())
	}
	r.note(false, next, nil)
	var mails, others []Notice
	for _, n := range due {
		if n.Channel == Mail {
			mails = append(mails, n)
		} else {
			others = append(others, n)
		}
	}
	offering, cancel := context.WithTimeout(ctx, while)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { r.deliver(ctx, offering, r.mails, mails) }) // each channel at its own pace
	wg.Go(func() { r.deliver(ctx, offering, r.others, others) })
	wg.Wait()
	return r.failures()
}

// deliver tries the notices as places get free, until offering ends or the
// provider lets one wait for ever: the rest would take as long, each, and is
// due still.
func (r *round) deliver(ctx, offering context.Context, places chan struct{}, due []Notice) {
	var hangs atomic.Bool
	for _, n := range due {
		select {
		case places <- struct{}{}:
		case <-offering.Done():
			r.note(false, r.sender.Now(), nil)
			return
		}
		if offering.Err() != nil || hangs.Load() {
			<-places
			r.note(false, r.sender.Now(), nil)
			return
		}
		r.under.Go(func() {
			if outcome := r.try(ctx, n); errors.Is(outcome, context.DeadlineExceeded) {
				hangs.Store(true)
			}
			<-places
		})
	}
}

// try claims a notice, delivers it, writes down how that went, and returns the
// delivery's error.
func (r *round) try(ctx context.Context, n Notice) error {
	mine, err := r.sender.claim(ctx, &n)
	if err != nil || !mine {
		r.note(false, time.Time{}, err)
		return nil
	}
	retry, outcome, err := r.sender.carryOut(ctx, n)
	r.note(outcome == nil, retry, err)
	if outcome != nil {
		r.ended.Signal()
	}
	return outcome
}

// carryOut delivers a claimed notice and writes down how that went. err is the
// table's: the notice is as it was, and due again when the lease ends.
func (s *Sender) carryOut(ctx context.Context, n Notice) (retry time.Time, outcome, err error) {
	delivering, done := lasting(ctx, deliveryTimeout)
	defer done()
	n.Provider, outcome = s.Deliver(delivering, n)
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	retry, err = s.settle(settling, n, outcome)
	return retry, outcome, err
}

// Handle does what is due of the notice at key: it claims, delivers and settles
// it, as SendDue does for all. again is how long to wait before handling it
// once more, and 0 when there is no more to do, as for a notice that was
// settled before. Handling it too early, too often or at once by several
// harms nothing. An error is the table's: then nothing is settled.
func (s *Sender) Handle(ctx context.Context, key table.Key) (again time.Duration, err error) {
	items, err := s.Table.GetMany(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("reading a notice: %w", err)
	}
	if !items[0].Found() {
		return 0, nil
	}
	n, err := read(items[0])
	if err != nil {
		return 0, s.discard(ctx, key, n, err)
	}
	if wait := time.UnixMilli(n.NotBefore).Sub(s.Now()); wait > 0 {
		return wait, nil
	}
	mine, err := s.claim(ctx, &n)
	if err != nil {
		return 0, err
	}
	if !mine {
		return lease, nil // another sender was faster, and may die yet
	}
	retry, _, err := s.carryOut(ctx, n)
	if err != nil || retry.IsZero() {
		return 0, err
	}
	return retry.Sub(s.Now()), nil
}

func (r *round) note(sent bool, due time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent {
		r.sent++
	}
	if !due.IsZero() {
		r.next = earlier(r.next, due)
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

// upcoming is when the next notice is due, as far as is known.
func (r *round) upcoming() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// failures returns the table's errors that were not returned before.
func (r *round) failures() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.errs
	r.errs = nil
	return errors.Join(all...)
}

// settle ends a claim by what came of the delivery. retry is when the notice
// is due again, zero if it is not.
func (s *Sender) settle(ctx context.Context, n Notice, outcome error) (retry time.Time, err error) {
	log := s.Log.With("id", n.ID, "request", n.Request, "kind", n.Kind, "channel", n.Channel, "to", Mask(n.To), "try", n.Tries)
	now := s.Now()
	switch {
	case outcome == nil:
		log.Info("notice sent", "provider", n.Provider, "age", now.Sub(time.Unix(n.Created, 0)))
		return time.Time{}, s.succeed(ctx, n)
	case errors.Is(outcome, ErrObsolete):
		log.Info("notice dropped", "reason", outcome)
		return time.Time{}, s.drop(ctx, n, outcome)
	case errors.Is(outcome, ErrPermanent), now.Sub(n.since()) >= giveUp && n.Tries >= leastTries:
		log.Error("notice given up", "error", outcome)
		return time.Time{}, s.fail(ctx, n.Key(), n, outcome, held(n))
	}
	retry = now.Add(s.backoff(n.Tries))
	log.LogAttrs(ctx, slog.LevelWarn, "notice not sent yet", slog.Any("error", outcome), slog.Time("retry", retry), slog.Duration("age", now.Sub(time.Unix(n.Created, 0))))
	return retry, s.postpone(ctx, n, retry, outcome)
}

// backoff is how long to wait after so many tries: from half to the whole of
// 1 s, 2 s, 4 s and so on to 1 h.
func (s *Sender) backoff(tries int64) time.Duration {
	d := lastRetry
	if tries < 13 { // 2^12 s are more than an hour
		d = min(lastRetry, firstRetry<<max(0, tries-1))
	}
	return d/2 + time.Duration(s.Jitter()*float64(d/2))
}

// lasting returns a context for timeout that outlives ctx by grace.
func lasting(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel() }
}
