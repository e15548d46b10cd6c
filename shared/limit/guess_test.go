package limit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/table"
)

func TestFiveFailuresAreFreeThenWaitsGrow(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail("alice", 5)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		want *= time.Second
		c.wantWait(want, "alice", fmt.Sprint("early", i))
		c.advance(want - time.Millisecond)
		c.wantWait(time.Millisecond, "alice", right) // a millisecond too early
		c.advance(time.Millisecond)
		c.want(fault.Unauthorized, "alice", fmt.Sprint("late", i)) // after the wait
	}
	// The right password still works after the longest wait.
	c.advance(300 * time.Second)
	c.want(okay, "alice", right) // the right password
	c.fail("alice", 5)
}

func TestFailuresCountPerUserAndSource(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail("alice", 5)
	c.want(fault.TooMany, "alice", right)
	c.at("192.0.2.2").want(okay, "alice", right) // from elsewhere
	c.want(fault.Unauthorized, "new", "wrong")   // another user
	c.want(fault.TooMany, "alice", right)        // a login from elsewhere clears no failures
}

func TestSourceTryingManyUsersIsSlowedDown(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 50 {
		name := fmt.Sprint("user", i)
		if i%10 == 0 {
			name = "no/user" // an impossible name
		}
		c.want(fault.Unauthorized, name, fmt.Sprint("wrong", i))
	}
	c.wantWait(time.Second, "alice", right)      // the next try
	c.at("192.0.2.2").want(okay, "alice", right) // from elsewhere
	c.advance(time.Second)
	c.want(okay, "alice", right) // after the wait
}

// TestRepeatedWrongPasswordWaitsLikeAnyOther sends each password twice, as OAuth clients do, and then one all the time.
func TestRepeatedWrongPasswordWaitsLikeAnyOther(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 9 {
		c.want(fault.Unauthorized, "bob", fmt.Sprint("wrong", i/2))
	}
	for _, password := range []string{"wrong4", "wrong5", right} {
		c.wantWait(time.Second, "bob", password)
	}
	refused := 0
	for range 300 {
		if k, _ := c.try("alice", "wrong"); k == fault.Unauthorized {
			refused++
		}
	}
	expect.Equal(t, "verified tries of 300 with one password", refused, 9)
	for range 20 {
		c.advance(time.Second)
		c.try("alice", "wrong")
	}
	if k, after := c.try("alice", "wrong"); k != fault.TooMany || after < 8*time.Second {
		t.Errorf("after 20 s more the password gives %v, wait %v", k, after)
	}
}

// TestRepetitionThatIsNotTheLastPasswordCounts alternates two passwords.
func TestRepetitionThatIsNotTheLastPasswordCounts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 5 {
		c.try("alice", fmt.Sprint("wrong", i%2))
	}
	c.want(fault.TooMany, "alice", right)
}

// fullTable refuses writes while full is set.
type fullTable struct {
	table.Table
	full *atomic.Bool
}

func (f fullTable) Write(ctx context.Context, ops ...table.Op) error {
	if f.full.Load() {
		return fmt.Errorf("writing: %w", table.ErrFull)
	}
	return f.Table.Write(ctx, ops...)
}

func TestFailuresCountWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	c, full := begin(t), &atomic.Bool{}
	c.Table = fullTable{c.Table, full}
	c.fail("alice", 3)
	full.Store(true)
	c.fail("alice", 2)
	for i, want := range []time.Duration{1, 2, 4} {
		want *= time.Second
		c.wantWait(want, "alice", right)
		c.advance(want)
		c.want(fault.Unauthorized, "alice", fmt.Sprint("late", i)) // after the wait
	}
	c.advance(8 * time.Second)
	_, err := c.Check(t.Context(), c.guess("alice", right))
	expect.NoErr(t, err)
	for i := range 50 {
		c.at("192.0.2.2").try(fmt.Sprint("user", i), "wrong")
	}
	c.at("192.0.2.2").want(fault.TooMany, "alice", right) // a source that tries many users
}

// TestFailuresOnAFullDiskCountOnceThereIsRoom fills the disk for some of the failures.
func TestFailuresOnAFullDiskCountOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	c, full := begin(t), &atomic.Bool{}
	c.Table = fullTable{c.Table, full}
	for i := range 6 {
		full.Store(i < 3)
		if i == 5 {
			c.advance(time.Second)
		}
		c.want(fault.Unauthorized, "alice", fmt.Sprint("wrong", i))
	}
	c.wantWait(2*time.Second, "alice", right) // after six failures
	c.advance(2 * time.Second)
	for range 2 {
		c.want(okay, "alice", right)
	}
}
