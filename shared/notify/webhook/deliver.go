package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is one address.
type target struct {
	*Dispatcher
	url     string // may hold a secret; never logged
	name    string // scheme and host, for the log
	queue   string // the partition of its deliveries
	wake    chan struct{}
	waiting atomic.Int64 // deliveries in the queue, about
}

// rouse never blocks.
func (t *target) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run delivers what is due until ctx ends. After a pass in which the receiver
// took nothing it rests, longer and longer, whatever else is due.
func (t *target) run(ctx context.Context) {
	resting := time.Duration(0)
	for ctx.Err() == nil {
		taken, tried, next, err := t.pass(ctx)
		if err != nil && ctx.Err() == nil {
			t.Log.Error("delivering events", "webhook", t.name, "error", err)
		}
		if taken > 0 || tried == 0 && err == nil {
			resting = 0
			pause(ctx, t.until(next), t.wake)
			continue
		}
		resting = min(max(2*resting, firstRetry), rest)
		pause(ctx, resting, nil)
	}
}

func (t *target) until(next time.Time) time.Duration {
	if next.IsZero() {
		return poll
	}
	return max(0, min(poll, next.Sub(t.Now())))
}

// DeliverDue does one pass over each address's queue and returns how many
// deliveries were taken.
func (d *Dispatcher) DeliverDue(ctx context.Context) (taken int, err error) {
	for _, t := range d.targets {
		n, _, _, failed := t.pass(ctx)
		taken += n
		err = errors.Join(err, failed)
	}
	return taken, err
}

// pass tries what is due, some at once. next is when something is due again.
func (t *target) pass(ctx context.Context) (taken, tried int, next time.Time, err error) {
	due, next, err := t.due(ctx)
	if err != nil {
		return 0, 0, next, err
	}
	queue := make(chan delivery, len(due))
	for _, it := range due {
		queue <- it
	}
	close(queue)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(parallel, len(due)) {
		wg.Go(func() {
			for it := range queue {
				if ctx.Err() != nil {
					return
				}
				ok, failed := t.try(ctx, it)
				mu.Lock()
				tried++
				if ok {
					taken++
				}
				err = errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if tried > taken { // a retry may be the next that is due
		next = t.Now().Add(firstRetry / 2)
	}
	return taken, tried, next, err
}

// try delivers an event and writes down how that went. An error is the table's.
func (t *target) try(ctx context.Context, it delivery) (ok bool, err error) {
	answer := t.send(ctx, it)
	if answer.err == nil {
		return true, t.remove(ctx, it)
	}
	log := t.Log.With("webhook", t.name, "id", it.ID, "type", it.Type, "try", it.Tries+1, "error", answer.err)
	now := t.Now()
	if answer.gone || now.Sub(time.UnixMilli(it.Time)) >= giveUp {
		log.Error("an event was given up")
		return false, t.remove(ctx, it)
	}
	retry := now.Add(max(t.backoff(it.Tries), answer.wait))
	log.Warn("an event was not taken yet", "retry", retry)
	return false, t.postpone(ctx, it, retry)
}

// backoff is how long to wait after so many earlier tries: from half to the
// whole of 1 s, 2 s, 4 s and so on to 1 h.
func (t *target) backoff(tries int64) time.Duration {
	d := lastRetry
	if tries < 12 { // 2^12 s are more than an hour
		d = min(lastRetry, firstRetry<<tries)
	}
	return d/2 + time.Duration(t.Jitter()*float64(d/2))
}

// answer is what came of a delivery.
type answer struct {
	err  error         // nil: it was taken. The text holds no address and nothing of the body
	gone bool          // the receiver wants no more of it
	wait time.Duration // the receiver's wish
}

func (t *target) send(ctx context.Context, it delivery) answer {
	ctx, cancel := t.lasting(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(it.Body))
	if err != nil {
		return answer{err: bare(err)}
	}
	now := t.Now()
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	r.Header.Set("User-Agent", "Ferry")
	r.Header.Set("Webhook-Id", it.ID)
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("Webhook-Signature", signatures(t.Secrets, it.ID, now, it.Body))
	resp, err := t.client.Do(r)
	if err != nil {
		return answer{err: bare(err)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // the connection can be used again
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return answer{}
	}
	return answer{
		err:  fmt.Errorf("the receiver answers %d", resp.StatusCode),
		gone: resp.StatusCode == http.StatusGone,
		wait: retryAfter(resp.Header.Get("Retry-After")),
	}
}

// lasting returns a context for one delivery that outlives ctx by grace: one
// that is cut off may have arrived, and is sent again.
func (t *target) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Timeout)
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

// bare is an error of the HTTP client without the address that it names.
func bare(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

// retryAfter reads a number of seconds, up to lastRetry; a date counts as none.
func retryAfter(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return min(lastRetry, time.Duration(min(n, 1<<20))*time.Second)
}
