package auth

import (
	"context"
	"fmt"
	"sync"

	"ferry/shared/table"
)

// lanes hold back tries at once in this process. A failure is on record only
// after its password was hashed; until then the try itself counts as one, so
// that many at once come no further than one after the other. Nobody is refused
// for what others have under way: who finds all free tries taken waits for one
// of them to end, and reads again if it was a failure.
//
// Other processes are seen by what they have recorded.
type lanes struct {
	mu sync.Mutex
	at map[table.Key]*lane
}

// lane belongs to a counter, for as long as somebody is in it.
type lane struct {
	tries    int64         // that have entered
	underWay int64         // those of them whose password is being verified
	changes  int64         // of the stored count, by those who left
	left     chan struct{} // closed when the next one leaves
}

// enter comes before the counts are read, and leave after they were changed.
func (t *throttle) enter() {
	l := &t.a.Hasher.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range t.counters() {
		if l.at[c.key] == nil {
			l.at[c.key] = &lane{left: make(chan struct{})}
		}
		c.lane = l.at[c.key]
		c.lane.tries++
	}
}

func (t *throttle) leave() {
	l := &t.a.Hasher.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range t.counters() {
		if t.placed {
			c.lane.underWay--
		}
		if t.changed {
			c.lane.changes++
		}
		close(c.lane.left)
		c.lane.left = make(chan struct{})
		if c.lane.tries--; c.lane.tries == 0 {
			delete(l.at, c.key)
		}
	}
}

// look is to be called before each reading of the counts.
func (t *throttle) look() {
	l := &t.a.Hasher.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range t.counters() {
		c.seen = c.lane.changes
	}
}

// place waits until the password may be verified. outdated tells that it may
// not yet: the counts are to be read again.
func (t *throttle) place(ctx context.Context) (outdated bool, err error) {
	for {
		wait, outdated := t.takePlace()
		if wait == nil || outdated {
			return outdated, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return false, fmt.Errorf("waiting for other logins: %w", ctx.Err())
		}
	}
}

// takePlace takes one in each lane, or in none; then it returns what to wait for.
func (t *throttle) takePlace() (wait <-chan struct{}, outdated bool) {
	l := &t.a.Hasher.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range t.counters() {
		if c.seen != c.lane.changes {
			return nil, true
		}
	}
	for _, c := range t.counters() {
		if c.lane.underWay >= c.atOnce() {
			return c.lane.left, false
		}
	}
	for _, c := range t.counters() {
		c.lane.underWay++
	}
	t.placed = true
	return nil, false
}

// atOnce is how many tries may be under way: those that are free, or one whose
// wait is over.
func (c *counter) atOnce() int64 { return max(c.free-c.item.Count, 1) }
