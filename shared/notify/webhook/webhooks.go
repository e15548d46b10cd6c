// Package webhooks brings public events to configured addresses, signed as
// Standard Webhooks says (https://www.standardwebhooks.com). It does so on one
// machine; in the cloud events go to a topic.
//
// Each address has a queue of its own in the table, ordered by when the next
// try of each event is due, so that one that does not answer holds up no other,
// and what is known of an event survives any end of the process. An event is
// delivered at least once: its id tells receivers what they have seen already.
// The order is not promised.
//
// Addresses are the operator's choice and may be private ones; that is why
// redirects, by which a receiver could choose another, are not followed.

package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"ferry/shared/table"
)

const (
	// MaxURLs is the most addresses: all copies of an event are written in
	// one transaction.
	MaxURLs = 10
	// Timeout is how long a receiver has to answer.
	Timeout = 15 * time.Second
	// giveUp is how long an event is tried.
	giveUp = 24 * time.Hour
	// Backlog is how many events wait for one address at most.
	Backlog = 100_000

	// parallel is how many events go to one address at once.
	parallel = 4
	// batch is the most events that one pass delivers: what has come since
	// gets its turn in between.
	batch = 64

	firstRetry = time.Second
	lastRetry  = time.Hour

	// look is how often new events are looked for.
	look = time.Second
	// poll is how often a queue is read without a reason.
	poll = 30 * time.Second
	// rest is the longest pause after a pass in which nothing was taken.
	rest = time.Minute
	// grace is how long a delivery goes on after the end of Run was asked for.
	grace = 5 * time.Second
	// settling bounds writing down how a delivery went.
	settling = 10 * time.Second
)

// Config is what a Dispatcher works with.
type Config struct {
	Table   table.Table
	URLs    []string
	Secrets []Secret
	Now     func() time.Time
	Log     *slog.Logger

	// What follows has defaults.
	Transport http.RoundTripper
	Timeout   time.Duration
	Backlog   int64
	Jitter    func() float64 // from 0 to 1 (exclusive), safe for concurrent use
}

// Dispatcher delivers events. It is safe for concurrent use. Two on one table
// deliver some events twice.
type Dispatcher struct {
	Config
	client  *http.Client
	targets []*target
}

// New returns a Dispatcher, or an error for addresses that are none.
func New(c Config) (*Dispatcher, error) {
	if len(c.URLs) > MaxURLs {
		return nil, fmt.Errorf("there are %d webhooks, and at most %d can be", len(c.URLs), MaxURLs)
	}
	if len(c.Secrets) == 0 {
		return nil, errors.New("there is no webhook secret")
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxResponseHeaderBytes = 64 << 10
		t.MaxConnsPerHost = MaxURLs * parallel
		c.Transport = t
	}
	c.Timeout, c.Backlog = cmp.Or(c.Timeout, Timeout), cmp.Or(c.Backlog, Backlog)
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	d := &Dispatcher{Config: c, client: &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	seen := map[string]bool{}
	for _, text := range c.URLs {
		t, err := d.newTarget(text)
		if err != nil {
			return nil, err
		}
		if !seen[t.queue] {
			d.targets = append(d.targets, t)
		}
		seen[t.queue] = true
	}
	return d, nil
}

// newTarget does not quote the address in its error: it may hold a secret.
func (d *Dispatcher) newTarget(text string) (*target, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return nil, errors.New("a webhook is not an address such as https://example.com/ferry-events")
	}
	sum := sha256.Sum256([]byte(text))
	return &target{
		Dispatcher: d, url: text, name: u.Scheme + "://" + u.Host,
		queue: "webhook#" + base64.RawURLEncoding.EncodeToString(sum[:16]), wake: make(chan struct{}, 1),
	}, nil
}

// Run delivers events until ctx ends, and lets deliveries under way end for a
// few seconds.
func (d *Dispatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, t := range d.targets {
		if !d.patiently(ctx, "counting what waits for a webhook", t.count) {
			return
		}
		wg.Go(func() { t.run(ctx) })
	}
	for d.patiently(ctx, "reading events", d.Spread) {
		if !pause(ctx, look, nil) {
			return
		}
	}
}

// patiently does a task again and again until it succeeds. It is false if ctx
// ends before.
func (d *Dispatcher) patiently(ctx context.Context, what string, task func(context.Context) error) bool {
	for {
		err := task(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		d.Log.Error(what, "error", err)
		if !pause(ctx, poll, nil) {
			return false
		}
	}
}

// pause waits for a while, or until woken. It is false if ctx ends before.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}
