package limit

import (
	"context"
	"errors"
	"fmt"

	"ferry/shared/table"
)

// A gate holds back concurrent tries in this process. A failure is recorded only after the
// guess is checked, which takes long for a password. Until then the try itself counts as a failure, so concurrent tries
// get no more guesses than consecutive ones. No try is refused because of others: if all
// free tries are taken, it waits for one of them to end, and reads the counts again if
// that one failed. A gate belongs to a counter, for as long as there are tries in it.
//
// The tries of other processes are seen once they are recorded.
type gate struct {
	tries    int64         // tries that have entered
	underWay int64         // tries whose guess is being checked
	changes  int64         // changes of the stored count by tries that have left
	left     chan struct{} // closed when the next try leaves
}

// eachGate calls do for each counter, while no other try uses the gates.
func (t *try) eachGate(do func(c *counter)) {
	t.Tries.mu.Lock()
	defer t.Tries.mu.Unlock()
	for _, c := range t.counters {
		do(c)
	}
}

// enter must be called before the counts are read, and leave after they were changed.
func (t *try) enter() {
	gates := t.Tries.gates
	t.eachGate(func(c *counter) {
		if gates[c.key] == nil {
			gates[c.key] = &gate{left: make(chan struct{})}
		}
		c.gate = gates[c.key]
		c.gate.tries++
	})
}

func (t *try) leave() {
	t.eachGate(func(c *counter) {
		if t.placed {
			c.gate.underWay--
		}
		if t.changed {
			c.gate.changes++
		}
		close(c.gate.left)
		c.gate.left = make(chan struct{})
		if c.gate.tries--; c.gate.tries == 0 {
			delete(t.Tries.gates, c.key)
		}
	})
}

// waitForPlace waits until the guess may be checked. If it returns outdated, the
// counts must be read again first.
func (t *try) waitForPlace(ctx context.Context) (outdated bool, err error) {
	for {
		wait, outdated := t.takePlace()
		if wait == nil || outdated {
			return outdated, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return false, fmt.Errorf("waiting for other tries: %w", ctx.Err())
		}
	}
}

// takePlace takes a place in every gate. If one is full, it takes none and returns a
// channel to wait for.
func (t *try) takePlace() (wait <-chan struct{}, outdated bool) {
	t.Tries.mu.Lock()
	defer t.Tries.mu.Unlock()
	for _, c := range t.counters {
		outdated = outdated || c.seen != c.gate.changes
		if c.gate.underWay >= c.atOnce() {
			wait = c.gate.left
		}
	}
	t.placed = wait == nil && !outdated
	if t.placed {
		for _, c := range t.counters {
			c.gate.underWay++
		}
	}
	return wait, outdated
}

// atOnce returns how many tries may be under way: the free ones, or one after its wait. There
// are never more than c.most, so that one caller's tries cannot fill the queue for a CPU, where
// others wait too.
func (c *counter) atOnce() int64 { return max(min(c.free-c.count(), c.most), 1) }

// InTurn calls do while this process does nothing else for a key, such as a source's requests for
// forgotten passwords. If the table is full, so that do cannot count itself, it is done at most this
// often.
func (l Limiter) InTurn(ctx context.Context, key table.Key, most int64, do func() error) error {
	t := &try{Limiter: l, counters: []*counter{{key: key, most: 1}}}
	t.enter()
	defer t.leave()
	if _, err := t.waitForPlace(ctx); err != nil {
		return err
	}
	if l.Tries.unsaved(key, l.Now()).Count >= most {
		return table.ErrFull
	}
	err := do()
	if errors.Is(err, table.ErrFull) {
		l.Tries.addUnsaved(key, l.Now())
	}
	return err
}
