package notify

import (
	"context"
	"sync"
	"time"
)

// SendDue lets each lane look once, and returns when the next message is due.
func (s *Sender) SendDue(ctx context.Context) (next time.Time) {
	var wg sync.WaitGroup
	for _, l := range s.lanes {
		wg.Go(func() { l.look(ctx); l.underWay.Wait() })
	}
	wg.Wait()
	for _, l := range s.lanes {
		next = earlier(next, l.next)
	}
	return next
}

// Missed returns how many failed tries count against the receivers.
func (s *Sender) Missed() (n int64) {
	for _, l := range s.lanes {
		n += l.missed.Load()
	}
	return n
}

// Constants that tests use.
const (
	Lease    = lease
	Parallel = parallel
	Batch    = batch
)

// SetBacklog bounds the events that wait for a webhook.
func (s *Sender) SetBacklog(n int64) { s.backlog = n }

// Display returns a user's text as plain text shows it.
func Display(s string) string { return spaced(display(oneLine(s))) }

// Shorten takes the middle out of a name.
var Shorten = shorten
