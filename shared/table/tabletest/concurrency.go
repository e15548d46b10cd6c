package tabletest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"ferry/shared/table"
)

const workers = 64

func concurrencyTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"64 updates of one counter lose none and see distinct values": countersLoseNone,
		"a bounded counter never passes its bound":                    boundedCounter,
		"a bounded counter in a write never passes its bound":         boundedInWrite,
		"one of many puts of a new key wins":                          onePutWins,
		"one of many deletes with a condition wins":                   oneDeleteWins,
		"transfers between two items keep their sum":                  transfersKeepSum,
		"relaxed and other updates of one counter lose none":          relaxedCounters,
	}
}

// together runs f in many goroutines at once and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// patiently repeats a write that the backend was too busy for: nothing of it happened.
func patiently(f func() error) error {
	for range 200 {
		if err := f(); !errors.Is(err, table.ErrBusy) {
			return err
		}
	}
	return table.ErrBusy
}

func countersLoseNone(t *testing.T, s suite) {
	seen := make([]int64, workers)
	together(workers, func(i int) {
		err := patiently(func() error {
			var r row
			err := s.Update(t.Context(), table.Update(s.key("k")).Add("count", 1), &r)
			seen[i] = r.Count
			return err
		})
		if err != nil {
			t.Errorf("update %d: %v", i, err)
		}
	})
	slices.Sort(seen)
	for i, n := range seen {
		if n != int64(i+1) {
			t.Fatalf("the updates saw %v, want each of 1 to %d once", seen, workers)
		}
	}
	s.wantRow("k", row{Count: workers})
}

func boundedCounter(t *testing.T, s suite) {
	const bound = 10
	s.put("k", row{Name: "n"})
	var passed atomic.Int64
	together(workers, func(i int) {
		err := patiently(func() error {
			var r row
			err := s.Update(t.Context(), table.Update(s.key("k")).Add("count", 1).If(table.AtMost("count", bound-1)), &r)
			if err == nil && (r.Count < 1 || r.Count > bound) {
				t.Errorf("an update saw %d", r.Count)
			}
			return err
		})
		s.count(err, &passed)
	})
	if passed.Load() != bound {
		t.Errorf("%d updates passed, want %d", passed.Load(), bound)
	}
	s.wantRow("k", row{Name: "n", Count: bound})
}

func boundedInWrite(t *testing.T, s suite) {
	const bound = 5
	var passed atomic.Int64
	together(workers/4, func(i int) {
		s.count(patiently(func() error {
			return s.Write(t.Context(),
				table.Update(s.key("count")).Add("count", 1).If(table.AtMost("count", bound-1)),
				table.Put(s.key(numbered("use", i)), row{}).If(table.NotExists()),
			)
		}), &passed)
	})
	if passed.Load() != bound {
		t.Errorf("%d writes passed, want %d", passed.Load(), bound)
	}
	s.wantRow("count", row{Count: bound})
	if n := len(s.query(table.Query{After: "use", Limit: 100}).Items); n != bound {
		t.Errorf("%d uses are stored, want %d", n, bound)
	}
}

// count counts a write that passed and complains about errors other than a refusal.
func (s suite) count(err error, passed *atomic.Int64) {
	s.Helper()
	switch {
	case err == nil:
		passed.Add(1)
	case !errors.Is(err, table.ErrCondition):
		s.Errorf("got error %v, want none or ErrCondition", err)
	}
}

func onePutWins(t *testing.T, s suite) {
	var passed, winner atomic.Int64
	together(16, func(i int) {
		err := patiently(func() error {
			return s.Write(t.Context(), table.Put(s.key("k"), row{Count: int64(i)}).If(table.NotExists()))
		})
		if err == nil {
			winner.Store(int64(i))
		}
		s.count(err, &passed)
	})
	if passed.Load() != 1 {
		t.Errorf("%d puts passed, want 1", passed.Load())
	}
	s.wantRow("k", row{Count: winner.Load()})
}

func oneDeleteWins(t *testing.T, s suite) {
	s.put("k", row{Name: "n"})
	var passed atomic.Int64
	together(16, func(i int) {
		s.count(patiently(func() error {
			return s.Write(t.Context(), table.Delete(s.key("k")).If(table.Equal("name", "n")))
		}), &passed)
	})
	if passed.Load() != 1 {
		t.Errorf("%d deletes passed, want 1", passed.Load())
	}
	s.wantMissing("k")
}

func transfersKeepSum(t *testing.T, s suite) {
	s.put("a", row{Count: 100})
	s.put("b", row{Count: 0})
	var passed atomic.Int64
	together(16, func(i int) {
		s.count(patiently(func() error {
			return s.Write(t.Context(), table.Update(s.key("a")).Add("count", -1), table.Update(s.key("b")).Add("count", 1))
		}), &passed)
	})
	if passed.Load() != 16 {
		t.Errorf("%d transfers passed, want 16", passed.Load())
	}
	s.wantRow("a", row{Count: 84})
	s.wantRow("b", row{Count: 16})
}

func relaxedCounters(t *testing.T, s suite) {
	var passed atomic.Int64
	together(workers, func(i int) {
		op := table.Update(s.key("k")).Add("count", 1)
		if i%2 == 0 {
			op = op.Relax()
		}
		s.count(patiently(func() error { return s.Write(t.Context(), op) }), &passed)
	})
	if passed.Load() != workers {
		t.Errorf("%d updates passed, want %d", passed.Load(), workers)
	}
	s.wantRow("k", row{Count: workers})
}
