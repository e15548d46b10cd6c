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
	c.fail(t, "alice", 5, source)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		want *= time.Second
		c.wantWait(t, want, "alice", fmt.Sprint("early", i), source)
		c.advance(want - time.Millisecond)
		c.wantWait(t, time.Millisecond, "alice", right, source) // a millisecond too early
		c.advance(time.Millisecond)
		c.want(t, fault.Unauthorized, "alice", fmt.Sprint("late", i), source) // after the wait
	}
	// The right password still works after the longest wait.
	c.advance(300 * time.Second)
	c.want(t, okay, "alice", right, source) // the right password
	c.fail(t, "alice", 5, source)
}

func TestFailuresCountPerUserAndSource(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail(t, "alice", 5, source)
	c.want(t, fault.TooMany, "alice", right, source)
	c.want(t, okay, "alice", right, "192.0.2.2")          // from elsewhere
	c.want(t, fault.Unauthorized, "new", "wrong", source) // another user
	c.want(t, fault.TooMany, "alice", right, source)      // a login from elsewhere clears no failures
}

func TestSourceTryingManyUsersIsSlowedDown(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 50 {
		name := fmt.Sprint("user", i)
		if i%10 == 0 {
			name = "no/user" // an impossible name
		}
		c.want(t, fault.Unauthorized, name, fmt.Sprint("wrong", i), source)
	}
	c.wantWait(t, time.Second, "alice", right, source) // the next try
	c.want(t, okay, "alice", right, "192.0.2.2")       // from elsewhere
	c.advance(time.Second)
	c.want(t, okay, "alice", right, source) // after the wait
}

// TestRepeatedWrongPasswordWaitsLikeAnyOther sends each password twice, as OAuth clients do, and then one all the time.
func TestRepeatedWrongPasswordWaitsLikeAnyOther(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{"a user": "alice", "an unknown name": "nobody"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			for i := range 9 {
				c.want(t, fault.Unauthorized, name, fmt.Sprint("wrong", i/2), source)
			}
			for _, password := range []string{"wrong4", "wrong5", right} {
				c.wantWait(t, time.Second, name, password, source)
			}
		})
	}
	c := begin(t)
	refused := 0
	for range 300 {
		if k, _ := c.try(t, "alice", "wrong", source); k == fault.Unauthorized {
			refused++
		}
	}
	expect.Equal(t, "verified tries of 300 with one password", refused, 9)
	for range 20 {
		c.advance(time.Second)
		c.try(t, "alice", "wrong", source)
	}
	if k, after := c.try(t, "alice", "wrong", source); k != fault.TooMany || after < 8*time.Second {
		t.Errorf("after 20 s more the password gives %v, wait %v", k, after)
	}
}

// TestRepetitionThatIsNotTheLastPasswordCounts alternates two passwords.
func TestRepetitionThatIsNotTheLastPasswordCounts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 5 {
		c.try(t, "alice", fmt.Sprint("wrong", i%2), source)
	}
	c.want(t, fault.TooMany, "alice", right, source)
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
	for what, before := range map[string]int{"nothing before": 0, "three before": 3} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, full := begin(t), &atomic.Bool{}
			c.Table = fullTable{c.Table, full}
			c.fail(t, "alice", before, source)
			full.Store(true)
			c.fail(t, "alice", 5-before, source)
			for i, want := range []time.Duration{1, 2, 4} {
				want *= time.Second
				c.wantWait(t, want, "alice", right, source)
				c.advance(want)
				c.want(t, fault.Unauthorized, "alice", fmt.Sprint("late", i), source) // after the wait
			}
			c.advance(8 * time.Second)
			_, err := c.Check(t.Context(), c.guess("alice", right, source))
			expect.NoErr(t, err)
			for i := range 50 {
				c.try(t, fmt.Sprint("user", i), "wrong", "192.0.2.2")
			}
			c.want(t, fault.TooMany, "alice", right, "192.0.2.2") // a source that tries many users
		})
	}
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
		c.want(t, fault.Unauthorized, "alice", fmt.Sprint("wrong", i), source)
	}
	c.wantWait(t, 2*time.Second, "alice", right, source) // after six failures
	c.advance(2 * time.Second)
	for range 2 {
		c.want(t, okay, "alice", right, source)
	}
}
