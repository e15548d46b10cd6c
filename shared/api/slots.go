package api

import (
	"cmp"
	"math"
	"sync"
	"time"

	"ferry/shared/fault"
)

const (
	// busyFor is how long a client must wait if it gets no slot, or if the table does not answer.
	busyFor = 5 * time.Second
	// writersOfPart is how many times one part may be arriving at once: a client that has lost its
	// connection sends the part again before the server notices.
	writersOfPart = 2
)

// Slots limits how many file bodies a process receives at once, because each takes memory. Each
// user gets at most a quarter of the total. It is safe for concurrent use. A Lambda function has no
// Slots, because it handles one request at a time.
type Slots struct {
	most  int
	mu    sync.Mutex
	all   int
	taken map[string]int // by user, and by part, whose key has a slash
}

// NewSlots returns Slots for at most most bodies; 0 is no limit.
func NewSlots(most int) *Slots {
	return &Slots{most: cmp.Or(most, math.MaxInt), taken: map[string]int{}}
}

// Take takes n slots for a body from a user, until release is called. If each user gets fewer than
// n, it takes all of this user's. part names a part of an upload session, or is empty. The fault
// says which limit was reached.
func (s *Slots) Take(user, part string, n int) (release func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	each := max(1, s.most/4)
	n = min(n, each)
	switch {
	case s.all+n > s.most:
		return nil, &fault.Fault{
			Kind:   fault.Unavailable,
			Detail: "too many uploads are running; try again",
			After:  busyFor,
		}
	case s.taken[user]+n > each:
		return nil, fault.Wait(busyFor,
			"too many of your uploads are running: the limit is %d", each)
	case part != "" && s.taken[part] >= writersOfPart:
		return nil, &fault.Fault{
			Kind:   fault.Conflict,
			Detail: "the part is already being sent twice; try again",
			After:  busyFor,
		}
	}
	s.add(n, user, part)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(-n, user, part)
	}, nil
}

func (s *Slots) add(n int, keys ...string) {
	s.all += n
	for _, key := range keys {
		s.taken[key] += n
		if s.taken[key] == 0 {
			delete(s.taken, key)
		}
	}
}
