package limit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// guess is one of several concurrent tries.
type guess struct{ name, password string }

// atOnce makes all tries concurrently, and counts their results. It also returns how many guesses
// were checked.
func (c check) atOnce(tries ...guess) (answers map[fault.Kind]int, checked int64) {
	c.Helper()
	var n atomic.Int64
	before := *c.watch
	*c.watch = func(password string) {
		n.Add(1)
		if before != nil {
			before(password)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers = map[fault.Kind]int{}
	for _, g := range tries {
		wg.Go(func() {
			k, _ := c.try(g.name, g.password)
			mu.Lock()
			defer mu.Unlock()
			answers[k]++
		})
	}
	wg.Wait()
	expect.Equal(c, "gates that are left", c.Tries.Gates(), 0)
	return answers, n.Load()
}

// wrong returns n tries for a name, each with another password.
func wrong(name string, n int) []guess {
	tries := make([]guess, n)
	for i := range tries {
		tries[i] = guess{name, fmt.Sprint("guess ", i)}
	}
	return tries
}

func TestConcurrentWrongPasswordsGetNoExtraTries(t *testing.T) {
	t.Parallel()
	for what, before := range map[string]int{
		"nothing before":              0,
		"three before":                3,
		"four before":                 4,
		"five before, after the wait": 5,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.fail("alice", before)
			if before == 5 {
				c.advance(time.Second)
			}
			free := max(5-before, 1)
			answers, checked := c.atOnce(wrong("alice", 60)...)
			if answers[fault.Unauthorized] != free || answers[fault.TooMany] != 60-free || checked != int64(free) {
				t.Errorf("the answers are %v after %d checks, want %d refused", answers, checked, free)
			}
		})
	}
}

// TestGuessesDoNotFillTheQueueForACPU makes many tries at once from one source, of one name and of many.
func TestGuessesDoNotFillTheQueueForACPU(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		try           func(i int) guess
		refused, most int
	}{
		"one password of one user": {try: func(int) guess { return guess{"alice", "wrong"} }, refused: 9, most: 1},
		"passwords of one user": {
			try:     func(i int) guess { return guess{"alice", fmt.Sprint("guess ", i)} },
			refused: 5,
			most:    1,
		},
		"many users": {
			try:     func(i int) guess { return guess{fmt.Sprint("user", i), "wrong"} },
			refused: 50,
			most:    atOnce,
		},
		"impossible names": {
			try:     func(i int) guess { return guess{"no/user", fmt.Sprint("guess ", i)} },
			refused: 50,
			most:    atOnce,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			var highest atomic.Int64
			*c.watch = func(string) {
				tries := c.Tries.UnderWay(source)
				highest.Store(max(highest.Load(), int64(tries-k.most)))
			}
			var tries []guess
			for i := range 300 {
				tries = append(tries, k.try(i))
			}
			answers, checked := c.atOnce(tries...)
			if answers[fault.Unauthorized] != k.refused ||
				answers[fault.TooMany] != 300-k.refused ||
				checked != int64(k.refused) {
				t.Errorf("the answers are %v after %d checks, want %d refused", answers, checked, k.refused)
			}
			if highest.Load() > 0 {
				t.Errorf("%d tries more than allowed were under way", highest.Load())
			}
		})
	}
}

// readTable calls a function after each read.
type readTable struct {
	table.Table
	read func()
}

func (r readTable) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	defer r.read()
	return r.Table.GetMany(ctx, keys...)
}

// TestRightGuessBeyondTheLastFreeTryIsRefused makes a right guess while the wrong one before it is
// still being checked.
func TestRightGuessBeyondTheLastFreeTryIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail("alice", 4)
	held, release := make(chan struct{}), make(chan struct{})
	*c.watch = func(string) {
		close(held) // only the wrong guess is checked
		<-release
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c.want(fault.Unauthorized, "alice", "the last free guess") // the wrong guess
	})
	<-held
	beside := c
	beside.Table = readTable{c.Table, sync.OnceFunc(func() { close(release) })}
	beside.want(fault.TooMany, "alice", right) // the right guess
	wg.Wait()
}

// TestForgottenFailuresGiveFiveFreeTriesAtOnce lets several tries read the same stale count.
func TestForgottenFailuresGiveFiveFreeTriesAtOnce(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 5 {
		from := fmt.Sprint("192.0.2.", 10+i)
		c := c.at(from)
		c.try("alice", "long ago")
		c.advance(time.Hour + time.Second)
		if answers, checked := c.atOnce(wrong("alice", 60)...); answers[fault.Unauthorized] != 5 || checked != 5 {
			t.Errorf("from %s the answers are %v after %d checks", from, answers, checked)
		}
	}
}

// TestProcessesRestartingACountLoseNoFailure lets two processes each verify a password before
// either has recorded its failure.
func TestProcessesRestartingACountLoseNoFailure(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.try("alice", "long ago")
	c.advance(time.Hour + time.Second)
	other := c.process()
	var both, ended sync.WaitGroup
	both.Add(2)
	for i, process := range []check{c, other} {
		var once sync.Once
		*process.watch = func(string) {
			once.Do(func() {
				both.Done()
				both.Wait()
			})
		}
		ended.Go(func() {
			process.want(fault.Unauthorized, "alice", fmt.Sprint("guess ", i))
		})
	}
	ended.Wait()
	c.fail("alice", 3)
	c.wantWait(time.Second, "alice", "one more") // after five failures
}

// readTogether is a table whose first read ends when that of another process does.
type readTogether struct {
	table.Table
	once sync.Once
	both *sync.WaitGroup
}

func (r *readTogether) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	items, err := r.Table.GetMany(ctx, keys...)
	r.once.Do(func() {
		r.both.Done()
		r.both.Wait()
	})
	return items, err
}

func TestProcessesShareTheOneTryAfterAWait(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail("alice", 5)
	c.advance(time.Second)
	var both, ended sync.WaitGroup
	both.Add(2)
	answers := make([]fault.Kind, 2)
	for i := range answers {
		process := c.process()
		process.Table = &readTogether{Table: c.Table, both: &both}
		ended.Go(func() { answers[i], _ = process.try("alice", fmt.Sprint("guess ", i)) })
	}
	ended.Wait()
	slices.Sort(answers)
	expect.Equal(t, "the answers", answers, []fault.Kind{fault.Unauthorized, fault.TooMany})
}

func TestRightPasswordBesideAFewWrongOnesIsAccepted(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 20 {
		from := fmt.Sprint("192.0.2.", 10+i)
		if answers, _ := c.at(from).atOnce(append(wrong("alice", 4), guess{"alice", right})...); answers[okay] != 1 ||
			answers[fault.Unauthorized] != 4 {
			t.Errorf("from %s the answers are %v", from, answers)
		}
	}
}

func TestConcurrentRightPasswordsAreAllAccepted(t *testing.T) {
	t.Parallel()
	for what, before := range map[string]int{"nothing before": 0, "four before": 4, "five before, after the wait": 5} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.fail("alice", before)
			tries := make([]guess, 40)
			for i := range tries {
				tries[i] = guess{"alice", right}
			}
			want := len(tries)
			if before == 5 {
				c.advance(time.Second)
				want = 1 // the tries during that one must wait
			}
			if answers, _ := c.atOnce(tries...); answers[okay] < want {
				t.Errorf("the answers are %v", answers)
			}
		})
	}
}

// TestWaitingLoginEndsWithItsRequest delays the try under way until the waiting one has
// given up.
func TestWaitingLoginEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.fail("alice", 4)
	held, release := make(chan struct{}), make(chan struct{})
	*c.watch = func(string) {
		close(held) // a second check would panic
		<-release
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c.want(okay, "alice", right) // the try under way
	})
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- c.login(ctx, "alice", right)
	}()
	cancel()
	expect.Err(t, "the waiting try", <-ended, context.Canceled)
	close(release)
	wg.Wait()
}
