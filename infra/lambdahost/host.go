// Package lambdahost runs built functions on this machine as Lambda runs them:
// real processes that poll the runtime API, each with one event at a time, more
// of them on demand, ended when they take too long, and with Lambda's limits on
// the size of events and answers.
//
// The runtime API is described at
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html, the limits at
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html.
package lambdahost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// MaxPayload is the most bytes of an event, and of an answer.
	MaxPayload = 6 << 20
	// initTimeout is how long a process may take to its first poll.
	initTimeout = 10 * time.Second
)

var (
	// ErrEventTooLarge is returned for an event that Lambda refuses.
	ErrEventTooLarge = errors.New("the event has more than 6 MB")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the function's host was closed")
)

// Function says what is run, and how.
type Function struct {
	Name        string
	Program     string // path of the built function
	Environment map[string]string
	Timeout     time.Duration
	Memory      int // MB; told to the function, not enforced
	MaxAtOnce   int // processes; 10 if 0
	Log         io.Writer
}

// Result is what became of an event.
type Result struct {
	Payload []byte        // the answer, or the description of the error
	Failed  string        // the kind of the function's error, empty if there is none
	Init    time.Duration // from the start of the process to its first poll; 0 if it was running
	Took    time.Duration // from the event to the answer
	Peak    int64         // most memory that the process has used so far, in bytes; 0 where that is not told
}

// Host runs one function. It is safe for concurrent use.
type Host struct {
	function Function
	slots    chan struct{} // one for each process there may be

	mu     sync.Mutex
	idle   []*instance
	all    map[*instance]bool
	closed bool
	events int
}

// New returns a Host, which starts no process before the first event.
func New(f Function) *Host {
	if f.MaxAtOnce <= 0 {
		f.MaxAtOnce = 10
	}
	if f.Log == nil {
		f.Log = io.Discard
	}
	return &Host{function: f, slots: make(chan struct{}, f.MaxAtOnce), all: map[*instance]bool{}}
}

// Invoke sends an event and waits for the answer. An error is the host's own,
// or that of a process which does not start; those of the function are in the
// Result.
func (h *Host) Invoke(ctx context.Context, event []byte) (Result, error) {
	if len(event) > MaxPayload {
		return Result{}, ErrEventTooLarge
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	i, init, err := h.take(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("starting %s: %w", h.function.Name, err)
	}
	r := i.invoke(ctx, h.id(), event, h.function.Timeout)
	r.Init = init
	if i.ended() {
		h.drop(i)
	} else {
		h.give(i)
	}
	return r, nil
}

// Start starts a process ahead of its first event, and returns how long it took
// to its first poll.
func (h *Host) Start(ctx context.Context) (init time.Duration, err error) {
	i, init, err := h.take(ctx)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", h.function.Name, err)
	}
	h.give(i)
	return init, nil
}

func (h *Host) id() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", h.events)
}

// take returns a process that waits for an event.
func (h *Host) take(ctx context.Context) (i *instance, init time.Duration, err error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, 0, ErrClosed
	}
	if n := len(h.idle); n > 0 {
		i, h.idle = h.idle[n-1], h.idle[:n-1]
	}
	h.mu.Unlock()
	if i != nil && !i.ended() {
		return i, 0, nil
	}
	if i != nil {
		h.drop(i)
	}
	i, init, err = start(ctx, h.function)
	if err != nil {
		return nil, 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		i.end()
		return nil, 0, ErrClosed
	}
	h.all[i] = true
	return i, init, nil
}

func (h *Host) give(i *instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle = append(h.idle, i)
}

func (h *Host) drop(i *instance) {
	i.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, i)
}

// Close ends all processes.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Keys(h.all))
	h.mu.Unlock()
	for _, i := range all {
		i.end()
	}
	return nil
}
