package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/retry"
)

// run runs a loop to its end, and returns how many tries it had and how long it took. each may be nil.
func run(ctx context.Context, b retry.Backoff, each func(*retry.Try)) (tries int, took time.Duration) {
	begun := time.Now()
	for t := range b.Loop(ctx) {
		tries++
		if each != nil {
			each(t)
		}
	}
	return tries, time.Since(begun)
}

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	t.Parallel()
	b := retry.Backoff{First: time.Second, Longest: 5 * time.Second}
	for failed, want := range []time.Duration{1, 1, 2, 4, 5, 5} {
		expect.Equal(t, "the longest pause", b.Bound(failed), want*time.Second)
	}
	expect.Equal(t, "after many failures", b.Bound(1_000_000), 5*time.Second)
}

func TestALoopEndsAfterItsTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := retry.Backoff{First: time.Second, Longest: 4 * time.Second, Steady: true, Tries: 5}
		tries, took := run(t.Context(), b, func(try *retry.Try) {
			expect.Equal(t, "whether it is the last", try.Last, try.Failed == 4)
		})
		expect.Equal(t, "tries", tries, 5)
		expect.Equal(t, "pauses", took, 11*time.Second)
	})
}

func TestPausesAreRandom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := retry.Backoff{First: time.Second, Longest: time.Second, Tries: 100}
		_, took := run(t.Context(), b, func(try *retry.Try) {
			if try.Pause < 0 || try.Pause > time.Second {
				t.Errorf("a pause of %v", try.Pause)
			}
		})
		if took < 30*time.Second || took > 70*time.Second {
			t.Errorf("99 pauses of half a second on average took %v", took)
		}
	})
}

func TestALoopEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b := retry.Backoff{For: 3 * time.Second, Clock: func() time.Time { return now }}
	tries, _ := run(t.Context(), b, func(*retry.Try) { now = now.Add(time.Second) })
	expect.Equal(t, "tries", tries, 3)
}

func TestTheBodyChangesTheNextPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := retry.Backoff{First: time.Second, Longest: time.Minute, Steady: true, Tries: 3}
		tries, took := run(t.Context(), b, func(try *retry.Try) { try.Pause += time.Hour })
		expect.Equal(t, "tries", tries, 3)
		expect.Equal(t, "pauses", took, 2*time.Hour+3*time.Second)
	})
}

func TestATryThatGotFurtherCountsAsTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := retry.Backoff{First: time.Second, Longest: time.Minute, Steady: true, Tries: 3}
		further := 4
		tries, took := run(t.Context(), b, func(try *retry.Try) {
			if further--; further >= 0 {
				try.Restart()
			}
		})
		expect.Equal(t, "tries", tries, 6)
		expect.Equal(t, "pauses", took, 4*time.Second+2*time.Second)
	})
}

func TestTheEndOfAContextEndsAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, why)
		defer cancel()
		tries, took := run(ctx, retry.Backoff{First: time.Minute, Longest: time.Minute, Steady: true}, nil)
		expect.Equal(t, "tries", tries, 2)
		expect.Equal(t, "pauses", took, 90*time.Second)
		expect.Equal(t, "the reason", retry.Sleep(ctx, time.Hour), why)
	})
}
