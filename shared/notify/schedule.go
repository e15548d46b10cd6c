package notify

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ferry/shared/retry"
	"ferry/shared/table"
)

const (
	// parallel is how many entries of one lane are delivered at once.
	parallel = 4
	// batch is the maximum number of entries that one look takes from each partition. So a look
	// needs little memory, and reads little more than it delivers.
	batch = 64

	// poll is how often the outbox is read without a signal: other processes put
	// entries in it too.
	poll = 30 * time.Second
	// breather is the shortest time between two looks without a signal.
	breather = 100 * time.Millisecond
	// longestRest is the longest backoff for a failing receiver.
	longestRest = time.Minute
)

// signal wakes a loop. Several signals before the loop looks count as one.
type signal chan struct{}

// send never blocks.
func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Wake makes Run look at once. It never blocks.
func (s *Sender) Wake() {
	for _, l := range s.lanes {
		l.wake.send()
	}
}

// Run sends what is due until the context ends, then gives deliveries under way
// a few seconds to end. It looks again when the next entry is due, when woken,
// and every 30 s in any case. Each lane goes at its own pace: a receiver that
// does not answer delays only its own entries. New events go into the outbox
// every second, beside the lanes.
func (s *Sender) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, l := range s.lanes {
		wg.Go(func() { l.run(ctx) })
	}
	for ctx.Err() == nil {
		wait := spreadEvery
		if err := s.Spread(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("reading events", "error", err)
			wait = poll
		}
		_ = retry.Sleep(ctx, wait)
	}
}

// reader returns the entry in an item. It returns nil if the entry belongs to another
// lane. It removes an item that is not an entry, and returns nil.
type reader func(context.Context, table.Item) (entry, error)

// lane delivers a part of the outbox: password codes, other mails, text messages, or the events
// for one webhook. It is a loop that shares nothing with other lanes.
type lane struct {
	*Sender
	query      table.Query // what to read of each partition
	partitions []string
	byDue      bool // whether each partition is sorted by when entries are due
	read       reader

	wake     signal
	slots    chan struct{} // holds one for each delivery under way
	underWay sync.WaitGroup
	failed   signal // a delivery failed and may be due before any other

	missed atomic.Int64 // failed tries that count against the receiver, since its last success

	mu   sync.Mutex
	next time.Time
}

func (s *Sender) newLane(query table.Query, read reader, partitions ...string) *lane {
	query.Limit = 4 * batch
	return &lane{
		Sender:     s,
		query:      query,
		partitions: partitions,
		read:       read,
		wake:       make(signal, 1),
		failed:     make(signal, 1),
		slots:      make(chan struct{}, parallel),
	}
}

func (l *lane) run(ctx context.Context) {
	defer l.underWay.Wait()
	for ctx.Err() == nil {
		more := l.look(ctx)
		// A receiver that has taken nothing for a whole batch gets a backoff, even if entries
		// are due: 1 s, 2 s and so on, up to 1 min.
		if missed := l.missed.Load() / batch; missed > 0 {
			_ = retry.Sleep(ctx, retry.Backoff{
				First:   firstRetry,
				Longest: longestRest,
			}.Bound(int(missed)))
		}
		if !more {
			l.pause(ctx)
		}
	}
}

// look reads what is due and begins to deliver it. more is true if something is
// left.
func (l *lane) look(ctx context.Context) (more bool) {
	l.mu.Lock()
	l.next = time.Time{} // before the outbox is read: deliveries that end meanwhile set it
	l.mu.Unlock()
	now := l.Now()
	due, next, err := l.due(ctx, now)
	l.note(ctx, next, err)
	return l.begin(ctx, due) && next.Equal(now)
}

// due returns entries that are due, the longest overdue first, and when the next one is due:
// now if more are left. It makes one call to the table for each partition, and for each 256
// items there that are not due.
func (l *lane) due(
	ctx context.Context,
	now time.Time,
) (due []entry, next time.Time, err error) {
	q := l.query
	for _, q.PK = range l.partitions {
		last := len(due) + batch
		for item, err := range table.Each(ctx, l.Table, q) {
			if err != nil {
				return nil, time.Time{}, err
			}
			e, err := l.read(ctx, item)
			if err != nil {
				return nil, time.Time{}, err
			}
			if e == nil {
				continue
			}
			if e.due().After(now) {
				next = earlier(next, e.due())
				if l.byDue {
					break
				}
				continue
			}
			if len(due) == last {
				next = earlier(next, now)
				break
			}
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b entry) int {
		return cmp.Compare(a.due().UnixMilli(), b.due().UnixMilli())
	})
	return due, next, nil
}

// begin delivers the entries as slots become free, until ctx ends or a receiver does not answer in
// time: the other entries would take as long, so they stay due. all reports whether it began all of
// them. It is also false if the table refuses writes, so that run pauses before the next look.
func (l *lane) begin(ctx context.Context, due []entry) (all bool) {
	var hangs, refused atomic.Bool // the receiver; the table
	for _, e := range due {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		if ctx.Err() != nil || hangs.Load() {
			<-l.slots
			l.note(ctx, l.Now(), nil)
			return false
		}
		l.underWay.Go(func() {
			retry, outcome, err := l.try(ctx, e)
			if errors.Is(outcome, context.DeadlineExceeded) ||
				errors.Is(outcome, os.ErrDeadlineExceeded) {
				hangs.Store(true)
			}
			l.note(ctx, retry, err)
			switch {
			case err != nil:
				refused.Store(true)
				l.failed.send()
			case outcome != nil && !retry.IsZero():
				l.missed.Add(1)
				l.failed.send()
			case outcome == nil && retry.IsZero():
				l.missed.Store(0)
			}
			<-l.slots
		})
	}
	return !refused.Load()
}

// note remembers when an entry is due, and logs an error from the table.
func (l *lane) note(ctx context.Context, due time.Time, err error) {
	if err != nil && ctx.Err() == nil {
		l.Log.Error("sending notices", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = earlier(l.next, due)
}

// pause waits until there is a reason to look again.
func (l *lane) pause(ctx context.Context) {
	for {
		select {
		case <-l.failed:
			continue
		case <-ctx.Done():
		case <-l.wake:
		case <-time.After(l.untilNext()):
		}
		return
	}
}

func (l *lane) untilNext() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next.IsZero() {
		return poll
	}
	return max(breather, min(poll, l.next.Sub(l.Now())))
}
