// Package limit is the one limiter: of guesses at a secret, of requests within the last hours, and
// of what is sent in an hour or a day. The counts are items of the table. Start reading with Guess;
// recent.go and window.go have the rates.
package limit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Wrong guesses are counted per secret and source, and per source. Neither count affects
// anyone else, so that nobody can lock another user out. After the free guesses each
// further one must wait, longer and longer, but never for good.
const (
	freePerPair   = 5
	freePerSource = 50
	maxWait       = 5 * time.Minute
	forgetAfter   = time.Hour // without a wrong guess
)

// Limiter limits guesses. It is safe for concurrent use.
type Limiter struct {
	Table table.Table
	Now   func() time.Time
	Tries *Tries // of this process
}

// Guess is one guess at a secret.
type Guess struct {
	Source string // who guesses
	// Of names what the secret belongs to, such as user#NAME. If it is empty, there is no such
	// thing, and the guess counts only for its source.
	Of     string
	AtOnce int               // guesses of the source that may be under way in this process
	Mark   [sha256.Size]byte // a keyed hash of the guess, which shows repetitions
	Also   []table.Key       // items to be read in the same call
	Wrong  error             // what Check returns if the guess is wrong
	// Right reports whether the guess is right. items are those of Also.
	Right func(items []table.Item) (bool, error)
}

// key returns the key of the count of a source's wrong guesses at something; "source" stands for all.
func key(of, source string) table.Key { return table.Key{PK: "throttle#" + source, SK: of} }

// Forget returns the operation that forgets the wrong guesses of a source at something.
func Forget(of, source string) table.Op { return table.Delete(key(of, source)) }

type countItem struct {
	V     int64 `json:"v"`
	Count int64 `json:"count"`
	Last  int64 `json:"last"` // Unix milliseconds of the last failure
}

// fresh reports whether the failures still count. A time that is far ahead was stored by a wrong
// clock: waiting for it could take years.
func (i countItem) fresh(now time.Time) bool {
	age := now.Sub(time.UnixMilli(i.Last))
	return age <= forgetAfter && age >= -table.Skew
}

// counter is a count of failures, as read from the table.
type counter struct {
	key     table.Key
	free    int64
	most    int64 // how many of its tries may be under way in this process
	found   bool
	stale   bool      // counting starts again
	item    countItem // zero Count if stale
	unsaved countItem // failures that the table had no room for
	gate    *gate
	seen    int64 // the gate's changes when the item was read
}

func (c *counter) count() int64 { return c.item.Count + c.unsaved.Count }

// wait is how long after the last failure the next try may come.
func (c *counter) wait() time.Duration {
	over := c.count() - c.free
	if over < 0 {
		return 0
	}
	return min(time.Second<<min(over, 20), maxWait)
}

// try is a guess under way.
type try struct {
	Limiter
	Guess
	pair     counter    // not used if there is nothing that has the secret
	counters []*counter // those that are used, the source's first
	claimed  bool       // admit has counted this try in advance
	placed   bool       // this try has a place in the gates
	changed  bool       // this try may have changed a stored count
}

// Check returns nil for a right guess, and counts a wrong one. If the guess comes too early, the fault
// is TooMany. hadFailures reports that wrong guesses are on record, which Forget clears. It makes one
// call to the table, one more if the guess is wrong, and one more for each wrong guess that is made
// meanwhile.
func (l Limiter) Check(ctx context.Context, g Guess) (hadFailures bool, err error) {
	t := &try{
		Limiter: l,
		Guess:   g,
		pair:    counter{key: key(g.Of, g.Source), free: freePerPair, most: 1},
	}
	t.counters = []*counter{{
		key:  key("source", g.Source),
		free: freePerSource,
		most: int64(g.AtOnce),
	}}
	if g.Of != "" {
		t.counters = append(t.counters, &t.pair)
	}
	t.enter()
	defer t.leave()
	items, err := t.admit(ctx)
	if err != nil {
		return false, err
	}
	right, err := g.Right(items)
	switch {
	case err != nil:
		return false, err
	case right:
		return t.pair.found, t.succeeded(ctx)
	}
	return false, cmp.Or(fault.Wrap(t.failed(ctx), "recording a wrong guess"), g.Wrong)
}

// read reads the counts and, in the same call, other items, which it returns.
func (t *try) read(ctx context.Context, also ...table.Key) ([]table.Item, error) {
	var keys []table.Key
	t.eachGate(func(c *counter) { keys, c.seen = append(keys, c.key), c.gate.changes })
	items, err := t.Table.GetMany(ctx, append(keys, also...)...)
	if err != nil {
		return nil, fmt.Errorf("reading wrong guesses: %w", err)
	}
	for i, c := range t.counters {
		c.item = countItem{}
		c.unsaved = t.Tries.unsaved(c.key, t.Now())
		c.found = items[i].Found()
		err := fault.Wrap(items[i].Decode(&c.item), "reading wrong guesses", table.ErrNotFound)
		if err != nil {
			return nil, err
		}
		c.stale = c.found && !c.item.fresh(t.Now())
		if c.stale {
			c.item.Count = 0
		}
	}
	return items[len(t.counters):], nil
}

// admit reads the other items, and refuses a try that comes too early.
func (t *try) admit(ctx context.Context) ([]table.Item, error) {
	for {
		items, err := t.read(ctx, t.Also...)
		if err != nil {
			return nil, err
		}
		if err := t.early(); err != nil {
			return nil, err
		}
		outdated, err := t.waitForPlace(ctx)
		if err != nil {
			return nil, err
		}
		if !outdated {
			return items, t.claim(ctx)
		}
	}
}

func (t *try) early() error {
	now := t.Now()
	for _, c := range t.counters {
		last := c.unsaved.Last
		if !c.stale {
			last = max(last, c.item.Last)
		}
		if left := time.UnixMilli(last).Add(c.wait()).Sub(now); c.wait() > 0 && left > 0 {
			return tooMany(min(left, c.wait()))
		}
	}
	return nil
}

func tooMany(wait time.Duration) error { return fault.Wait(wait, "too many failed logins") }

// claim counts a try in advance once there is a wait, so that only one of several concurrent
// tries passes, across all processes.
func (t *try) claim(ctx context.Context) error {
	if t.pair.wait() == 0 {
		return nil
	}
	t.claimed, t.changed = true, true
	op := t.count(&t.pair)
	if t.pair.item.Count > 0 {
		op = op.If(table.Equal("count", t.pair.item.Count))
	}
	err := t.Table.Write(ctx, op)
	if errors.Is(err, table.ErrCondition) {
		return tooMany(t.pair.wait())
	}
	return t.unsaved(err, &t.pair)
}

// failed counts a wrong guess, but not its first repetition in this process: OAuth 2.0
// clients repeat a failed login, with the credentials sent another way. It makes one call to the
// table, and two more if another try has just restarted a count.
func (t *try) failed(ctx context.Context) error {
	if t.repeats() && !t.claimed {
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
		if err := t.Table.Write(ctx, ops...); !errors.Is(err, table.ErrCondition) {
			return t.unsaved(err, counters...)
		}
		if _, err := t.read(ctx); err != nil {
			return err
		}
	}
}

// succeeded forgets the failures if this try was counted in advance. Otherwise a login
// forgets them in its own write.
func (t *try) succeeded(ctx context.Context) error {
	t.Tries.remember(t.pair.key, func(f *failure) { *f = failure{} })
	if !t.claimed {
		return nil
	}
	return fault.Wrap(
		t.Table.Write(ctx, Forget(t.Of, t.Source)),
		"forgetting wrong guesses",
		table.ErrFull,
	)
}

// count returns the operation that adds a failure. A stale count starts again. If another try
// has just restarted it, the operation fails: that try's failure must not be lost.
func (t *try) count(c *counter) table.Op {
	now := t.Now()
	op := table.Update(c.key)
	if c.stale {
		op = op.Set("count", int64(1)).If(table.AtMost("last", c.item.Last))
	} else {
		op = op.Add("count", 1)
	}
	return op.Set("v", int64(table.Format)).
		Set("last", now.UnixMilli()).
		Expire(now.Add(forgetAfter))
}

// unsaved counts a failure in this process if the table could not. A full disk must not
// allow more guesses, and is not the caller's concern.
func (t *try) unsaved(err error, counters ...*counter) error {
	if err == nil {
		return nil
	}
	for _, c := range counters {
		t.Tries.addUnsaved(c.key, t.Now())
	}
	return fault.Wrap(err, "counting a wrong guess", table.ErrFull)
}

// repeats notes a wrong guess, and reports whether it is the same as the last one and
// was not repeated before.
func (t *try) repeats() (repeats bool) {
	t.Tries.remember(t.counters[len(t.counters)-1].key, func(f *failure) {
		repeats = f.wrong == t.Mark && !f.repeated
		f.wrong, f.repeated = t.Mark, repeats
	})
	return repeats
}
