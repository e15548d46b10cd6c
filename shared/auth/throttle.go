package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ferry/shared/envelope"
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
	// Tag is 16 bits of a salted hash of the last wrong password: enough to see that
	// a client repeats itself, too little to find the password.
	Salt string `json:"salt,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

// counter is a count of failures, as read from the table.
type counter struct {
	key   table.Key
	free  int64
	found bool
	stale bool // so old that counting starts again
	item  throttleItem
	lane  *lane
	seen  int64 // the lane's changes when the item was read
}

// throttle limits the tries of one login.
type throttle struct {
	a       *Authenticator
	pair    counter // with a zero key if nobody can have the name
	source  counter
	claimed bool // admit has counted this try in advance
	placed  bool // this try has a place in the lanes
	changed bool // this try may have changed a stored count
}

func (a *Authenticator) throttle(name, source string) *throttle {
	t := &throttle{a: a, source: counter{key: table.Key{PK: "throttle#" + source, SK: "source"}, free: freePerSource}}
	if name != "" {
		t.pair = counter{key: table.Key{PK: "throttle#" + source, SK: "user#" + name}, free: freePerPair}
	}
	return t
}

func (t *throttle) counters() []*counter {
	if t.pair.key.PK == "" {
		return []*counter{&t.source}
	}
	return []*counter{&t.source, &t.pair}
}

// read reads the counts, and the user unless the name is empty, in one call. An unknown
// user comes back without a password.
func (t *throttle) read(ctx context.Context, name string) (u User, err error) {
	var keys []table.Key
	for _, c := range t.counters() {
		keys = append(keys, c.key)
	}
	if name != "" {
		keys = append(keys, UserKey(name))
	}
	items, err := t.a.Table.GetMany(ctx, keys...)
	if err != nil {
		return u, fmt.Errorf("reading a user and the failed logins: %w", err)
	}
	for i, c := range t.counters() {
		c.found, c.stale, c.item = false, false, throttleItem{}
		err := items[i].Decode(&c.item)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return u, fmt.Errorf("reading failed logins: %w", err)
		}
		c.found = true
		if t.a.Now().Sub(time.UnixMilli(c.item.Last)) > forgetAfter {
			c.stale, c.item = true, throttleItem{Last: c.item.Last}
		}
	}
	if name == "" {
		return u, nil
	}
	return u, envelope.Wrap(items[len(items)-1].Decode(&u), "reading user", table.ErrNotFound)
}

// wait is how long after the last failure the next try may come.
func (c *counter) wait() time.Duration {
	over := c.item.Count - c.free
	if over < 0 || c.key.PK == "" {
		return 0
	}
	return min(time.Second<<min(over, 20), maxWait)
}

// admit reads the user and refuses a try that comes too early.
func (t *throttle) admit(ctx context.Context, name, password string) (User, error) {
	for {
		t.noteChanges()
		u, err := t.read(ctx, name)
		if err != nil || t.repeats(password) {
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
			return u, t.claim(ctx, password)
		}
	}
}

func (t *throttle) early() error {
	now := t.a.Now()
	for _, c := range t.counters() {
		if left := time.UnixMilli(c.item.Last).Add(c.wait()).Sub(now); c.wait() > 0 && left > 0 {
			return envelope.WaitFault(left, "too many failed logins; wait before the next try")
		}
	}
	return nil
}

// claim counts a try in advance once there is a wait, so that only one of several
// concurrent tries passes, in all processes.
func (t *throttle) claim(ctx context.Context, password string) error {
	if t.pair.wait() == 0 {
		return nil
	}
	t.claimed, t.changed = true, true
	op, err := t.count(&t.pair, password)
	if err != nil {
		return err
	}
	err = t.a.Table.Write(ctx, op.If(table.Equal("count", t.pair.item.Count)))
	if errors.Is(err, table.ErrCondition) {
		return envelope.WaitFault(t.pair.wait(), "too many failed logins; wait before the next try")
	}
	return err
}

// failed counts a wrong password, but not if the client has just tried the same one:
// OAuth 2.0 clients repeat a failed login with the credentials in another place. It makes one call to the
// table, and two more if another try has just restarted a count.
func (t *throttle) failed(ctx context.Context, password string) error {
	if t.repeats(password) {
		return nil
	}
	t.changed = true
	for {
		var ops []table.Op
		for _, c := range t.counters() {
			if c == &t.pair && t.claimed {
				continue
			}
			op, err := t.count(c, password)
			if err != nil {
				return err
			}
			ops = append(ops, op)
		}
		if err := t.a.Table.Write(ctx, ops...); !errors.Is(err, table.ErrCondition) {
			return err
		}
		if _, err := t.read(ctx, ""); err != nil {
			return err
		}
	}
}

// succeeded clears the failures if this try was counted in advance. Otherwise a login
// clears them in its own write.
func (t *throttle) succeeded(ctx context.Context) error {
	if !t.claimed {
		return nil
	}
	return envelope.Wrap(t.a.Table.Write(ctx, table.Delete(t.pair.key)), "clearing failed logins")
}

// count returns the operation that adds a failure. A stale count starts again. If another
// try has just restarted it, the operation is refused: that failure must not be lost.
func (t *throttle) count(c *counter, password string) (table.Op, error) {
	salt := make([]byte, 8)
	if _, err := io.ReadFull(t.a.Random, salt); err != nil {
		return table.Op{}, fmt.Errorf("making a salt: %w", err)
	}
	now := t.a.Now()
	text := base64.RawStdEncoding.EncodeToString(salt)
	op := table.Update(c.key)
	if c.stale {
		op = op.Set("count", int64(1)).If(table.AtMost("last", c.item.Last))
	} else {
		op = op.Add("count", 1)
	}
	return op.Set("v", int64(layout)).Set("last", now.UnixMilli()).Set("salt", text).Set("tag", tag(text, password)).
		Expire(now.Add(forgetAfter)), nil
}

// repeats reports whether password is the one that failed last time.
func (t *throttle) repeats(password string) bool {
	c := &t.pair
	if c.key.PK == "" {
		c = &t.source
	}
	return c.item.Salt != "" && subtle.ConstantTimeCompare([]byte(tag(c.item.Salt, password)), []byte(c.item.Tag)) == 1
}

func tag(salt, password string) string {
	sum := sha256.Sum256([]byte(salt + "\x00" + password))
	return base64.RawStdEncoding.EncodeToString(sum[:2])
}

// lanes hold back concurrent tries in this process. A failure is recorded only after the
// password is hashed. Until then the try itself counts as a failure, so concurrent tries
// get no more guesses than consecutive ones. No try is refused because of others: if all
// free tries are taken, it waits for one of them to end, and reads the counts again if
// that one failed.
//
// The tries of other processes are seen once they are recorded.
type lanes struct {
	mu sync.Mutex
	at map[table.Key]*lane
}

// lane belongs to a counter, for as long as there are tries in it.
type lane struct {
	tries    int64         // tries that have entered
	underWay int64         // tries whose password is being verified
	changes  int64         // changes of the stored count by tries that have left
	left     chan struct{} // closed when the next try leaves
}

// enter must be called before the counts are read, and leave after they were changed.
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

// noteChanges must be called each time before the counts are read.
func (t *throttle) noteChanges() {
	l := &t.a.Hasher.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range t.counters() {
		c.seen = c.lane.changes
	}
}

// waitForPlace waits until the password may be verified. If it returns outdated, the
// counts must be read again first.
func (t *throttle) waitForPlace(ctx context.Context) (outdated bool, err error) {
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

// takePlace takes a place in every lane. If one is full, it takes none and returns a
// channel to wait for.
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

// atOnce returns how many tries may be under way: the free ones, or one after its wait.
func (c *counter) atOnce() int64 { return max(c.free-c.item.Count, 1) }
