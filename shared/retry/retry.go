// Package retry is the one way to try something again: how long to pause, and when to give up. Only the caller
// knows which failures are worth another try.
package retry

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// Backoff says how long to pause between tries, and how many there are. The first pause is at most First, and
// each later one at most twice as long as the one before, up to Longest.
type Backoff struct {
	First, Longest time.Duration

	// Steady pauses are as long as they may be. Others are random: callers that failed together
	// would otherwise return together.
	Steady bool

	Tries int // in all; 0 means no limit

	// No try follows one that ends later than For after the loop's start, by Clock. Zero means no
	// limit; a nil Clock is time.Now.
	For   time.Duration
	Clock func() time.Time
}

// A Try is one round of a loop.
type Try struct {
	Failed int           // how many tries have failed before this one
	Last   bool          // whether no other try follows, as there were enough
	Pause  time.Duration // before the next try; the loop's body may change it

	backoff Backoff
}

// Loop yields tries and pauses between them, until there were enough, or the context ends during a pause. The loop's
// body leaves the loop when it needs no other try.
func (b Backoff) Loop(ctx context.Context) iter.Seq[*Try] {
	if b.Clock == nil {
		b.Clock = time.Now
	}
	return func(yield func(*Try) bool) {
		end := b.Clock().Add(b.For)
		over := func() bool { return b.For > 0 && !b.Clock().Before(end) }
		t := &Try{backoff: b}
		for t.Restart(); yield(t) && !t.Last && !over(); t.follow(t.Failed + 1) {
			if Sleep(ctx, t.Pause) != nil {
				return
			}
		}
	}
}

// Restart counts this try as the first, because it has got further than the one before.
func (t *Try) Restart() { t.follow(0) }

// follow makes t the try that follows so many failed ones.
func (t *Try) follow(failed int) {
	t.Failed = failed
	t.Last = t.backoff.Tries > 0 && failed+1 >= t.backoff.Tries
	t.Pause = t.backoff.Bound(failed + 1)
	if !t.backoff.Steady {
		t.Pause = rand.N(t.Pause + 1)
	}
}

// Bound returns the longest pause after so many failed tries.
func (b Backoff) Bound(failed int) time.Duration {
	pause := b.First
	for ; failed > 1 && pause < b.Longest; failed-- {
		pause *= 2
	}
	return min(pause, b.Longest)
}

// Sleep pauses for d. If the context ends earlier, it returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return context.Cause(ctx)
	}
}
