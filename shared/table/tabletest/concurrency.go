package tabletest

import (
	"fmt"
	"maps"
	"reflect"
	"sync"

	"ferry/shared/table"
)

func concurrencyCases() []testCase {
	count := update("k").Add("count", 1)
	bounded := func(bound int64) table.Op { return count.If(table.AtMost("count", bound-1)) }
	same := func(all ...table.Op) func(int) []table.Op { return func(int) []table.Op { return all } }
	return []testCase{
		{"updates of one counter lose none", nil, atOnce(64, 64, same(count)), done, items{"k": {Count: 64}}},
		{"relaxed and other updates of one counter lose none", nil,
			atOnce(64, 64, func(i int) []table.Op {
				mixed := count
				mixed.Relaxed = i%2 == 0
				return []table.Op{mixed}
			}), done, items{"k": {Count: 64}}},
		{"a bounded counter never passes its bound", named("k"),
			atOnce(64, 10, same(bounded(10))), done, items{"k": {Name: "k", Count: 10}}},
		{"a bounded counter bounds the rest of its write", nil,
			atOnce(16, 5, func(i int) []table.Op {
				return []table.Op{bounded(5), put(fmt.Sprint("use", i), row{}).If(table.NotExists())}
			}), done, items{"k": {Count: 5}}},
		{"of many puts of a new item one wins", nil,
			atOnce(16, 1, func(i int) []table.Op {
				return []table.Op{put("k", row{Count: int64(i)}).If(table.NotExists())}
			}), done, nil},
		{"of many deletes with a condition one wins", named("k"),
			atOnce(16, 1, same(remove("k").If(table.Equal("name", "k")))), done, items{}},
		{"transfers between two items keep their sum", items{"a": {Count: 100}, "b": {}},
			atOnce(16, 16, same(update("a").Add("count", -1), update("b").Add("count", 1))),
			done, items{"a": {Count: 84}, "b": {Count: 16}}},
		{"each of many writes is read back with what it put", nil,
			atOnce(40, 40, func(i int) []table.Op { return []table.Op{put(fmt.Sprint("k", i), row{})} }), done, nil},
	}
}

// atOnce has workers write at once, of whom so many must pass; the others must
// be refused. What those who pass put must be shown to them, and be there in the
// end; single updates must each see a count of their own.
func atOnce(workers, pass int, write func(worker int) []table.Op) action {
	return func(s *state) error {
		var mu sync.Mutex
		passed, made, counts := 0, items{}, map[int64]bool{}
		together(workers, func(i int) {
			all := write(i)
			shown, err := s.patiently(all...)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.wantErr("a worker", err, refused(0))
				return
			}
			passed++
			for _, op := range all {
				counts[shown[op.Key.SK].Count] = true
				put, ok := op.Value.(row)
				if ok {
					made[op.Key.SK] = put
				}
				if ok && s.way == byOthers && !reflect.DeepEqual(shown[op.Key.SK], put) {
					s.Errorf("%s: put was %+v, the page shows %+v", s.way, put, shown[op.Key.SK])
				}
			}
		})
		maps.Copy(s.want, made)
		if passed != pass {
			s.Errorf("%s: %d of %d passed, want %d", s.way, passed, workers, pass)
		}
		if all := write(0); s.way == byOthers && len(all) == 1 && all[0].Kind == table.KindUpdate && len(counts) != pass {
			s.Errorf("%s: %d updates saw %d counts", s.way, passed, len(counts))
		}
		return nil
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
func (s *state) patiently(all ...table.Op) (shown items, err error) {
	for range 200 {
		if shown, err = s.try(all...); kind(err) != kind(table.ErrBusy) {
			break
		}
	}
	return shown, err
}
