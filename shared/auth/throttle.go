package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Failed logins are counted per user and source, and per source. Neither count affects
// anyone else, so that nobody can lock another user out. After the free tries each
// further try must wait, longer and longer, but never for good.
const (
	freePerPair   = 5
	freePerSource = 50
	maxWait       = 5 * time.Minute
	forgetAfter   = time.Hour // without a failure
)

type throttleItem struct {
	V     int64 `json:"v"`
	Count int64 `json:"count"`
	Last  int64 `json:"last"` // Unix milliseconds of the last failure
}

// fresh reports whether the failures still count. A time that is far ahead was stored by a wrong
// clock: waiting for it could take years.
func (i throttleItem) fresh(now time.Time) bool {
	age := now.Sub(time.UnixMilli(i.Last))
	return age <= forgetAfter && age >= -Skew
}

// counter is a count of failures, as read from the table.
type counter struct {
	key     table.Key
	free    int64
	most    int64 // how many of its tries may be under way in this process
	found   bool
	stale   bool         // counting starts again
	item    throttleItem // zero Count if stale
	unsaved throttleItem // failures that the table had no room for
	gate    *gate
	seen    int64 // the gate's changes when the item was read
}

func (c *counter) count() int64 { return c.item.Count + c.unsaved.Count }

// Throttle is what a process knows about failed logins and those under way, besides the counts in
// the table. A process needs one. It is safe for concurrent use.
type Throttle struct {
	mu       sync.Mutex
	gates    map[table.Key]*gate   // of the counters of passwords being verified
	failures map[table.Key]failure // of at most maxRemembered counters
}

// NewThrottle returns a Throttle.
func NewThrottle() *Throttle {
	return &Throttle{gates: map[table.Key]*gate{}, failures: map[table.Key]failure{}}
}

// attempt limits the tries of one login.
type attempt struct {
	a        *Authenticator
	source   counter
	pair     counter    // not used if nobody can have the name
	counters []*counter // those that are used
	claimed  bool       // admit has counted this try in advance
	placed   bool       // this try has a place in the gates
	changed  bool       // this try may have changed a stored count
}

func (a *Authenticator) attempt(name, source string) *attempt {
	t := a.attemptOn("user#"+name, source)
	if name == "" {
		t.counters = t.counters[:1]
	}
	return t
}

// attemptOn is attempt for anything with a password; what names it.
func (a *Authenticator) attemptOn(what, source string) *attempt {
	t := &attempt{a: a, source: counter{
		key: table.Key{PK: "throttle#" + source, SK: "source"}, free: freePerSource, most: int64(cap(a.Hasher.slots)),
	}}
	t.pair = counter{key: table.Key{PK: "throttle#" + source, SK: what}, free: freePerPair, most: 1}
	t.counters = []*counter{&t.source, &t.pair}
	return t
}

// verify checks a password against the hash of the user with this name or, if name is empty, of
// something else. It reports whether the password is right; a wrong one counts as a failure.
func (t *attempt) verify(
	ctx context.Context, name, password string, hash func(User) string,
) (u User, ok bool, err error) {
	t.enter()
	defer t.leave()
	if u, err = t.admit(ctx, name); err != nil {
		return User{}, false, err
	}
	ok, err = t.a.Hasher.Verify(ctx, hash(u), password)
	switch {
	case err != nil:
		return User{}, false, fmt.Errorf("verifying a password: %w", err)
	case ok:
		return u, true, t.succeeded(ctx)
	}
	return User{}, false, fault.Wrap(t.failed(ctx, password), "recording a wrong password")
}

// read reads the counts, and the user unless the name is empty, in one call. An unknown
// user comes back without a password.
func (t *attempt) read(ctx context.Context, name string) (u User, err error) {
	var keys []table.Key
	t.eachGate(func(c *counter) { keys, c.seen = append(keys, c.key), c.gate.changes })
	if name != "" {
		keys = append(keys, UserKey(name))
	}
	items, err := t.a.Table.GetMany(ctx, keys...)
	if err != nil {
		return u, fmt.Errorf("reading a user and the failed logins: %w", err)
	}
	for i, c := range t.counters {
		c.item = throttleItem{}
		c.unsaved = t.a.Throttle.unsaved(c.key, t.a.Now())
		c.found = items[i].Found()
		if err := fault.Wrap(items[i].Decode(&c.item), "reading failed logins", table.ErrNotFound); err != nil {
			return u, err
		}
		c.stale = c.found && !c.item.fresh(t.a.Now())
		if c.stale {
			c.item.Count = 0
		}
	}
	if name == "" {
		return u, nil
	}
	return u, fault.Wrap(items[len(items)-1].Decode(&u), "reading user", table.ErrNotFound)
}

// wait is how long after the last failure the next try may come.
func (c *counter) wait() time.Duration {
	over := c.count() - c.free
	if over < 0 {
		return 0
	}
	return min(time.Second<<min(over, 20), maxWait)
}

// admit reads the user and refuses a try that comes too early.
func (t *attempt) admit(ctx context.Context, name string) (User, error) {
	for {
		u, err := t.read(ctx, name)
		if err != nil {
			return u, err
		}
		if err := t.early(); err != nil {
			return User{}, err
		}
		outdated, err := t.waitForPlace(ctx)
		if err != nil {
			return User{}, err
		}
		if !outdated {
			return u, t.claim(ctx)
		}
	}
}

func (t *attempt) early() error {
	now := t.a.Now()
	for _, c := range t.counters {
		last := c.unsaved.Last
		if !c.stale {
			last = max(last, c.item.Last)
		}
		if left := time.UnixMilli(last).Add(c.wait()).Sub(now); c.wait() > 0 && left > 0 {
			return fault.Wait(min(left, c.wait()), "too many failed logins")
		}
	}
	return nil
}

// claim counts a try in advance once there is a wait, so that only one of several concurrent
// tries passes, across all processes.
func (t *attempt) claim(ctx context.Context) error {
	if t.pair.wait() == 0 {
		return nil
	}
	t.claimed, t.changed = true, true
	op := t.count(&t.pair)
	if t.pair.item.Count > 0 {
		op = op.If(table.Equal("count", t.pair.item.Count))
	}
	err := t.a.Table.Write(ctx, op)
	if errors.Is(err, table.ErrCondition) {
		return fault.Wait(t.pair.wait(), "too many failed logins")
	}
	return t.unsaved(err, &t.pair)
}

// failed counts a wrong password, but not its first repetition in this process: OAuth 2.0
// clients repeat a failed login, with the credentials sent another way. It makes one call to the
// table, and two more if another try has just restarted a count.
func (t *attempt) failed(ctx context.Context, password string) error {
	if t.repeats(password) && !t.claimed {
		return nil
	}
	t.changed = true
	for {
		counters := t.counters
		if t.claimed {
			counters = counters[:1] // the pair was counted in advance
		}
		var ops []table.Op
		for _, c := range counters {
			ops = append(ops, t.count(c))
		}
		if err := t.a.Table.Write(ctx, ops...); !errors.Is(err, table.ErrCondition) {
			return t.unsaved(err, counters...)
		}
		if _, err := t.read(ctx, ""); err != nil {
			return err
		}
	}
}

// succeeded clears the failures if this try was counted in advance. Otherwise a login
// clears them in its own write.
func (t *attempt) succeeded(ctx context.Context) error {
	t.a.Throttle.remember(t.pair.key, func(f *failure) { *f = failure{} })
	if !t.claimed {
		return nil
	}
	return fault.Wrap(t.a.Table.Write(ctx, table.Delete(t.pair.key)), "clearing failed logins", table.ErrFull)
}

// count returns the operation that adds a failure. A stale count starts again. If another try
// has just restarted it, the operation fails: that try's failure must not be lost.
func (t *attempt) count(c *counter) table.Op {
	now := t.a.Now()
	op := table.Update(c.key)
	if c.stale {
		op = op.Set("count", int64(1)).If(table.AtMost("last", c.item.Last))
	} else {
		op = op.Add("count", 1)
	}
	return op.Set("v", int64(table.Format)).Set("last", now.UnixMilli()).Expire(now.Add(forgetAfter))
}

// unsaved counts a failure in this process if the table could not. A full disk must not
// allow more guesses, and is not the caller's concern.
func (t *attempt) unsaved(err error, counters ...*counter) error {
	if err == nil {
		return nil
	}
	now := t.a.Now()
	for _, c := range counters {
		t.a.Throttle.remember(c.key, func(f *failure) {
			if !f.unsaved.fresh(now) {
				f.unsaved.Count = 0
			}
			f.unsaved = throttleItem{Count: f.unsaved.Count + 1, Last: now.UnixMilli()}
		})
	}
	return fault.Wrap(err, "counting a failed login", table.ErrFull)
}

// repeats notes a wrong password, and reports whether it is the same as the last one and
// was not repeated before.
func (t *attempt) repeats(password string) (repeats bool) {
	key := t.counters[len(t.counters)-1].key
	id := t.a.Hasher.memoKey(key.String(), password)
	t.a.Throttle.remember(key, func(f *failure) {
		repeats = f.wrong == id && !f.repeated
		f.wrong, f.repeated = id, repeats
	})
	return repeats
}

// failure is what this process remembers about the failed logins of a counter.
type failure struct {
	unsaved  throttleItem
	wrong    [sha256.Size]byte // a keyed hash of the last wrong password
	repeated bool              // it was repeated
}

// unsaved returns the failures of a counter that the table had no room for.
func (t *Throttle) unsaved(key table.Key, now time.Time) throttleItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.failures[key]; f.unsaved.fresh(now) {
		return f.unsaved
	}
	return throttleItem{}
}

// remember changes what this process remembers about a counter.
func (t *Throttle) remember(key table.Key, change func(*failure)) {
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

// A gate holds back concurrent tries in this process. A failure is recorded only after the
// password is hashed. Until then the try itself counts as a failure, so concurrent tries
// get no more guesses than consecutive ones. No try is refused because of others: if all
// free tries are taken, it waits for one of them to end, and reads the counts again if
// that one failed. A gate belongs to a counter, for as long as there are tries in it.
//
// The tries of other processes are seen once they are recorded.
type gate struct {
	tries    int64         // tries that have entered
	underWay int64         // tries whose password is being verified
	changes  int64         // changes of the stored count by tries that have left
	left     chan struct{} // closed when the next try leaves
}

// eachGate calls do for each counter, while no other try uses the gates.
func (t *attempt) eachGate(do func(c *counter)) {
	t.a.Throttle.mu.Lock()
	defer t.a.Throttle.mu.Unlock()
	for _, c := range t.counters {
		do(c)
	}
}

// enter must be called before the counts are read, and leave after they were changed.
func (t *attempt) enter() {
	gates := t.a.Throttle.gates
	t.eachGate(func(c *counter) {
		if gates[c.key] == nil {
			gates[c.key] = &gate{left: make(chan struct{})}
		}
		c.gate = gates[c.key]
		c.gate.tries++
	})
}

func (t *attempt) leave() {
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
			delete(t.a.Throttle.gates, c.key)
		}
	})
}

// waitForPlace waits until the password may be verified. If it returns outdated, the
// counts must be read again first.
func (t *attempt) waitForPlace(ctx context.Context) (outdated bool, err error) {
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

// takePlace takes a place in every gate. If one is full, it takes none and returns a
// channel to wait for.
func (t *attempt) takePlace() (wait <-chan struct{}, outdated bool) {
	t.a.Throttle.mu.Lock()
	defer t.a.Throttle.mu.Unlock()
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
