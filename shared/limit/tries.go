package limit

import (
	"crypto/sha256"
	"sync"
	"time"

	"ferry/shared/table"
)

// Tries is what a process knows about failed tries and those under way, besides the counts in
// the table. A process needs one. It is safe for concurrent use.
type Tries struct {
	mu       sync.Mutex
	gates    map[table.Key]*gate   // of the counters of guesses being checked
	failures map[table.Key]failure // of at most maxRemembered counters
}

// NewTries returns Tries.
func NewTries() *Tries {
	return &Tries{gates: map[table.Key]*gate{}, failures: map[table.Key]failure{}}
}

// maxRemembered is about how many counters a process remembers the failures of.
const maxRemembered = 10_000

// failure is what this process remembers about the failures of a counter.
type failure struct {
	unsaved  countItem
	wrong    [sha256.Size]byte // the mark of the last wrong guess
	repeated bool              // it was repeated
}

// unsaved returns the failures of a counter that the table had no room for.
func (t *Tries) unsaved(key table.Key, now time.Time) countItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.failures[key]; f.unsaved.fresh(now) {
		return f.unsaved
	}
	return countItem{}
}

// addUnsaved counts a failure that the table has no room for.
func (t *Tries) addUnsaved(key table.Key, now time.Time) {
	t.remember(key, func(f *failure) {
		if !f.unsaved.fresh(now) {
			f.unsaved.Count = 0
		}
		f.unsaved = countItem{Count: f.unsaved.Count + 1, Last: now.UnixMilli()}
	})
}

// remember changes what this process remembers about a counter.
func (t *Tries) remember(key table.Key, change func(*failure)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failures[key]
	change(&f)
	delete(t.failures, key)
	if f == (failure{}) {
		return
	}
	for other := range t.failures {
		if len(t.failures) < maxRemembered {
			break
		}
		delete(t.failures, other)
	}
	t.failures[key] = f
}
