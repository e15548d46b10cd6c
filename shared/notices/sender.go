package notices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// woken, and every 30 s in any case.
func (s *Sender) Run(ctx context.Context, wake <-chan struct{}) {
	for {
		_, next, err := s.SendDue(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Log.Error("sending notices", "error", err)
		}
		timer := time.NewTimer(s.pause(next))
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
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
	due, next, err := s.waiting(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	p := pass{sender: s, next: next}
	var mails, others []Notice
	for _, n := range due {
		if n.Channel == Mail {
			mails = append(mails, n)
		} else {
			others = append(others, n)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.work(ctx, mails) }) // each channel at its own pace
	wg.Go(func() { p.work(ctx, others) })
	wg.Wait()
	return p.sent, p.next, errors.Join(p.errs...)
}

// pass is one SendDue under way.
type pass struct {
	sender *Sender

	mu   sync.Mutex
	sent int
	next time.Time
	errs []error
}

// work tries the notices, some at once, until the context ends or the provider
// lets one wait for ever: the rest would take as long, each, and is due still.
func (p *pass) work(ctx context.Context, due []Notice) {
	queue := make(chan Notice, len(due))
	for _, n := range due {
		queue <- n
	}
	close(queue)
	var wg sync.WaitGroup
	var hangs atomic.Bool
	for range min(parallel, len(due)) {
		wg.Go(func() {
			for n := range queue {
				if ctx.Err() != nil || hangs.Load() {
					p.note(false, p.sender.Now(), nil)
					return
				}
				if outcome := p.try(ctx, n); errors.Is(outcome, context.DeadlineExceeded) {
					hangs.Store(true)
				}
			}
		})
	}
	wg.Wait()
}

// try claims a notice, delivers it, writes down how that went, and returns the
// delivery's error.
func (p *pass) try(ctx context.Context, n Notice) error {
	s := p.sender
	mine, err := s.claim(ctx, &n)
	if err != nil || !mine {
		p.note(false, time.Time{}, err)
		return nil
	}
	retry, outcome, err := s.carryOut(ctx, n)
	p.note(outcome == nil, retry, err)
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

func (p *pass) note(sent bool, retry time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent {
		p.sent++
	}
	if !retry.IsZero() {
		p.next = earlier(p.next, retry)
	}
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

// settle ends a claim by what came of the delivery. retry is when the notice
// is due again, zero if it is not.
func (s *Sender) settle(ctx context.Context, n Notice, outcome error) (retry time.Time, err error) {
	log := s.Log.With("id", n.ID, "kind", n.Kind, "channel", n.Channel, "to", Mask(n.To), "try", n.Tries)
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
	log.LogAttrs(ctx, slog.LevelWarn, "notice not sent yet", slog.Any("error", outcome), slog.Time("retry", retry))
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
