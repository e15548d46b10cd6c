package api

import (
	"sync"
	"time"

	"ferry/shared/fault"
)

const (
	// busyFor is how long a client must wait if it gets no place.
	busyFor = 5 * time.Second
	// writersOfPart is how often one part may arrive at once: a client that has lost
	// its connection sends a part again before the server knows.
	writersOfPart = 2
)

// Places limits how many file bodies a process receives at once, as each takes memory: a total,
// and a quarter of it for each user. It is safe for concurrent use. A function has none, as it
// handles one request at a time.
type Places struct {
	most  int // 0 is no limit
	mu    sync.Mutex
	all   int
	taken map[string]int // by user, and by part, which has a slash
}

// NewPlaces returns Places for at most most bodies; 0 is no limit.
func NewPlaces(most int) *Places { return &Places{most: most, taken: map[string]int{}} }

// Enter takes a place for a body from a user, until leave is called. part names a part of an
// upload session, or is empty. The fault says which limit is reached.
func (p *Places) Enter(user, part string) (leave func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	each := max(1, p.most/4)
	switch {
	case p.most > 0 && p.all >= p.most:
		return nil, &fault.Fault{
			Kind: fault.Unavailable, Detail: "too many uploads are running; try again", After: busyFor,
		}
	case p.most > 0 && p.taken[user] >= each:
		return nil, fault.Wait(busyFor,
			"too many of your uploads are running: the limit is %d", each)
	case part != "" && p.taken[part] >= writersOfPart:
		return nil, &fault.Fault{
			Kind: fault.Conflict, Detail: "the part is already being sent twice; try again", After: busyFor,
		}
	}
	p.add(1, user, part)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(-1, user, part)
	}, nil
}

func (p *Places) add(n int, keys ...string) {
	p.all += n
	for _, key := range keys {
		if p.taken[key] += n; p.taken[key] == 0 {
			delete(p.taken, key)
		}
	}
}
