package auth_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

func TestFiveFailuresAreFreeThenWaitsGrow(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail(t, "alice", 5, source)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		want *= time.Second
		k, after := c.try(t, "alice", fmt.Sprint("early", i), source)
		if k != fault.TooMany || after != want {
			t.Fatalf("after %d failures: %v, wait %v, want %v", 5+i, k, after, want)
		}
		c.advance(want - time.Millisecond)
		if k, after := c.try(t, "alice", right, source); k != fault.TooMany || after != time.Millisecond {
			t.Fatalf("a millisecond too early: %v, %v", k, after)
		}
		c.advance(time.Millisecond)
		if k, _ := c.try(t, "alice", fmt.Sprint("late", i), source); k != fault.Unauthorized {
			t.Fatalf("after the wait of %v: %v", want, k)
		}
	}
	// The right password still works after the longest wait.
	c.advance(300 * time.Second)
	if k, _ := c.try(t, "alice", right, source); k != okay {
		t.Fatalf("the right password gives %v", k)
	}
	c.fail(t, "alice", 5, source)
}

func TestFailuresCountPerUserAndSource(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail(t, "alice", 5, source)
	if k, _ := c.try(t, "alice", right, source); k != fault.TooMany {
		t.Fatalf("the user is not slowed down: %v", k)
	}
	if k, _ := c.try(t, "alice", right, "192.0.2.2"); k != okay {
		t.Errorf("from elsewhere: %v", k)
	}
	if k, _ := c.try(t, "new", "wrong", source); k != fault.Unauthorized {
		t.Errorf("another user: %v", k)
	}
	if k, _ := c.try(t, "alice", right, source); k != fault.TooMany {
		t.Errorf("a login from elsewhere cleared the failures: %v", k)
	}
}

func TestSourceTryingManyUsersIsSlowedDown(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 50 {
		name := fmt.Sprint("user", i)
		if i%10 == 0 {
			name = "no/user" // an impossible name
		}
		if k, _ := c.try(t, name, fmt.Sprint("wrong", i), source); k != fault.Unauthorized {
			t.Fatalf("try %d: %v", i, k)
		}
	}
	if k, after := c.try(t, "alice", right, source); k != fault.TooMany || after != time.Second {
		t.Errorf("the next try gives %v, %v", k, after)
	}
	if k, _ := c.try(t, "alice", right, "192.0.2.2"); k != okay {
		t.Errorf("from elsewhere: %v", k)
	}
	c.advance(time.Second)
	if k, _ := c.try(t, "alice", right, source); k != okay {
		t.Errorf("after the wait: %v", k)
	}
}

func TestFailuresAreForgottenAfterAnHour(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail(t, "alice", 5, source)
	c.advance(time.Hour + time.Second)
	c.fail(t, "alice", 5, source)
	if k, _ := c.try(t, "alice", "one more", source); k != fault.TooMany {
		t.Errorf("the failures after the hour do not count: %v", k)
	}
}

// TestRepeatedWrongPasswordWaitsLikeAnyOther sends each password twice, as OAuth clients do, and then one all the time.
func TestRepeatedWrongPasswordWaitsLikeAnyOther(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{"a user": "alice", "an unknown name": "nobody"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			for i := range 9 {
				if k, _ := c.try(t, name, fmt.Sprint("wrong", i/2), source); k != fault.Unauthorized {
					t.Fatalf("try %d gives %v", i, k)
				}
			}
			for _, password := range []string{"wrong4", "wrong5", right} {
				if k, after := c.try(t, name, password, source); k != fault.TooMany || after != time.Second {
					t.Errorf("%q gives %v, wait %v", password, k, after)
				}
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
	if refused != 9 {
		t.Errorf("%d of 300 tries with one password were verified, want 9", refused)
	}
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
	if k, _ := c.try(t, "alice", right, source); k != fault.TooMany {
		t.Errorf("two alternating passwords do not count: %v", k)
	}
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
				if k, after := c.try(t, "alice", right, source); k != fault.TooMany || after != want {
					t.Fatalf("the wait %d is %v, %v, want %v", i, k, after, want)
				}
				c.advance(want)
				if k, _ := c.try(t, "alice", fmt.Sprint("late", i), source); k != fault.Unauthorized {
					t.Fatalf("after the wait of %v: %v", want, k)
				}
			}
			c.advance(8 * time.Second)
			if _, err := c.Check(t.Context(), by("alice", right, source)); err != nil {
				t.Errorf("after the wait the right password gives %v", err)
			}
			for i := range 50 {
				c.try(t, fmt.Sprint("user", i), "wrong", "192.0.2.2")
			}
			if k, _ := c.try(t, "alice", right, "192.0.2.2"); k != fault.TooMany {
				t.Errorf("a source that tries many users gets %v", k)
			}
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
		if k, _ := c.try(t, "alice", fmt.Sprint("wrong", i), source); k != fault.Unauthorized {
			t.Fatalf("try %d gives %v", i, k)
		}
	}
	if k, after := c.try(t, "alice", right, source); k != fault.TooMany || after != 2*time.Second {
		t.Errorf("after six failures: %v, wait %v", k, after)
	}
	c.advance(2 * time.Second)
	for i := range 2 {
		if k, _ := c.try(t, "alice", right, source); k != okay {
			t.Errorf("login %d gives %v", i, k)
		}
	}
}

// TestWaitDoesNotRevealWhoExists checks that every kind of name must wait alike.
func TestWaitDoesNotRevealWhoExists(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, name := range []string{"alice", "ALICE@x", "nobody", "off", "new"} {
		c.fail(t, name, 5, source)
		if k, after := c.try(t, name, right, source); k != fault.TooMany || after != time.Second {
			t.Errorf("then %s gets %v, wait %v", name, k, after)
		}
	}
	c.advance(time.Second)
	for name, want := range map[string]fault.Kind{"alice": okay, "nobody": fault.Unauthorized, "off": fault.Unauthorized, "new": fault.Unauthorized} {
		if k, _ := c.try(t, name, right, source); k != want {
			t.Errorf("after the wait %s gets %v", name, k)
		}
	}
}
