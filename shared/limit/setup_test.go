package limit_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/limit"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

const (
	right  = "the right password"
	source = "192.0.2.1"
	// atOnce is how many guesses of a source are checked at the same time.
	atOnce = 2
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.ahead.Load()))
}
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// check is a Limiter of logins on a table. Every user has the right password.
type check struct {
	*testing.T
	limit.Limiter
	*clock
	from  string
	watch *func(password string) // is called while a password is being checked
}

func begin(t *testing.T) check {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	expect.NoErr(t, err)
	t.Cleanup(func() { db.Close() })
	c := &clock{}
	return check{t, limit.Limiter{Table: db, Now: c.now, Tries: limit.NewTries()}, c, source, new(func(string))}
}

// process returns a check in another process on the same table.
func (c check) process() check {
	c.Tries, c.watch = limit.NewTries(), new(func(string))
	return c
}

// at returns a check of logins from another source.
func (c check) at(from string) check {
	c.from = from
	return c
}

func (c check) guess(name, password string) limit.Guess {
	g := limit.Guess{
		Source: c.from,
		Of:     "user#" + name,
		AtOnce: atOnce,
		Mark:   sha256.Sum256([]byte(name + " " + password)),
	}
	g.Wrong = fault.New(fault.Unauthorized, "the guess is wrong")
	if name == "no/user" { // nobody can have this name
		g.Of = ""
	}
	g.Right = func([]table.Item) (bool, error) {
		if f := *c.watch; f != nil {
			f(password)
		}
		return password == right && g.Of != "", nil
	}
	return g
}

// login guesses, and forgets the wrong guesses before a right one.
func (c check) login(ctx context.Context, name, password string) error {
	g := c.guess(name, password)
	hadFailures, err := c.Check(ctx, g)
	if err == nil && hadFailures {
		return c.Table.Write(ctx, limit.Forget(g.Of, c.from))
	}
	return err
}

// try logs in, and returns the kind of the fault and when to retry.
func (c check) try(name, password string) (fault.Kind, time.Duration) {
	c.Helper()
	err := c.login(c.Context(), name, password)
	if err == nil {
		return okay, 0
	}
	f := fault.Of(err)
	if f == nil {
		c.Fatalf("the login fails with %v", err)
	}
	return f.Kind, f.After
}

const okay fault.Kind = -1

// want checks how a login ends.
func (c check) want(kind fault.Kind, name, password string) {
	c.Helper()
	if k, after := c.try(name, password); k != kind {
		c.Errorf("%s with %q from %s: %v, wait %v, want %v", name, password, c.from, k, after, kind)
	}
}

// wantWait checks that a login is refused for this long.
func (c check) wantWait(wait time.Duration, name, password string) {
	c.Helper()
	if k, after := c.try(name, password); k != fault.TooMany || after != wait {
		c.Errorf("%s with %q from %s: %v, wait %v, want %v", name, password, c.from, k, after, wait)
	}
}

// fail logs in n times, each time with another wrong password.
func (c check) fail(name string, n int) {
	c.Helper()
	for i := range n {
		c.want(fault.Unauthorized, name, fmt.Sprint("wrong", i))
	}
}
