package client

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// Retry says how often a request is tried that can be repeated. Between tries
// it waits a random time of up to Min, then of up to twice that and so on, up
// to Max; longer if the service asks for it. Zero fields stand for 10 tries, half
// a second and half a minute.
type Retry struct {
	Tries    int // in all, without one that got anywhere; 1 never repeats
	Min, Max time.Duration

	// Told hears of each failure before the wait for the next try; it may be
	// nil. It is called from several goroutines.
	Told func(err error, wait time.Duration)
}

// longestWait is the longest Retry-After that is waited for without asking.
const longestWait = 2 * time.Minute

func (r Retry) withDefaults() Retry {
	r.Tries = max(1, cmp.Or(r.Tries, 10))
	r.Min, r.Max = cmp.Or(r.Min, 500*time.Millisecond), cmp.Or(r.Max, 30*time.Second)
	return r
}

// progress is an error of a try that got somewhere, so that tries count anew.
type progress struct{ error }

func (p progress) Unwrap() error { return p.error }

// again is an error that another try may mend, whatever it is.
type again struct{ error }

func (a again) Unwrap() error { return a.error }

// do calls f until it succeeds, fails for good, or has failed too often.
func (r Retry) do(ctx context.Context, f func() error) error {
	for failed := 1; ; failed++ {
		err := f()
		if err == nil {
			return nil
		}
		var p progress
		if errors.As(err, &p) {
			failed, err = 1, p.error
		}
		wait, again := r.wait(err, failed)
		if !again || ctx.Err() != nil {
			return cause(ctx, err)
		}
		if r.Told != nil {
			r.Told(err, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// cause prefers the reason why a context ended to what it made fail.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// wait is how long to wait after the failed-th failure, and whether to at all.
func (r Retry) wait(err error, failed int) (time.Duration, bool) {
	if failed >= r.Tries || !temporary(err) {
		return 0, false
	}
	bound := r.Max
	if shift := failed - 1; shift < 30 && r.Min<<shift < r.Max {
		bound = r.Min << shift
	}
	wait := rand.N(bound + 1) // all clients of a service that comes back must not come at once
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		wait += e.RetryAfter
		return wait, e.RetryAfter <= longestWait
	}
	return wait, true
}

// temporary tells whether the same request may succeed later.
func temporary(err error) bool {
	var e *Error
	var a again
	switch {
	case errors.As(err, &a):
		return true
	case errors.As(err, &e):
		return passes(e)
	case errors.Is(err, ErrNoLogin), errors.Is(err, ErrAnswer), errors.Is(err, ErrChanged), errors.Is(err, ErrDigest), errors.Is(err, errLocal):
		return false
	case errors.Is(err, context.Canceled):
		return false
	}
	return isNetwork(err)
}

func passes(e *Error) bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.Status == http.StatusConflict && e.RetryAfter > 0 // the same request is still under way
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
