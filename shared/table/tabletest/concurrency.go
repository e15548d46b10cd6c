package tabletest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"ferry/shared/table"
)

func concurrencyCases() []testCase {
	count := update("k").Add("count", 1)
	bounded := func(bound int64) table.Op { return count.If(table.AtMost("count", bound-1)) }
	same := func(all ...table.Op) func(int) []table.Op {
		return func(int) []table.Op { return all }
	}
	return []testCase{
		{"updates of one counter lose none if some are relaxed", nil,
			atOnce(64, 64, func(i int) []table.Op {
				mixed := count
				mixed.Relaxed = i%2 == 0
				return []table.Op{mixed}
			}), done, items{"k": {Count: 64}}},
		{"a bounded counter never passes its bound", named("k"),
			atOnce(64, 10, same(bounded(10))), done, items{"k": {Name: "k", Count: 10}}},
		{"a bounded counter also bounds the rest of its write", nil,
			atOnce(16, 5, func(i int) []table.Op {
				return []table.Op{bounded(5), put(fmt.Sprint("use", i), row{}).
					If(table.NotExists())}
			}), done, items{"k": {Count: 5}}},
		{"one of many puts of a new item wins", nil,
			atOnce(16, 1, func(i int) []table.Op {
				return []table.Op{put("k", row{Count: int64(i)}).If(table.NotExists())}
			}), done, nil},
		{"one of many conditional deletes wins", named("k"),
			atOnce(16, 1, same(remove("k").If(table.Equal("name", "k")))), done, items{}},
		{"transfers between two items keep their sum", items{"a": {Count: 100}, "b": {}},
			atOnce(16, 16, same(update("a").Add("count", -1), update("b").Add("count", 1))),
			done, items{"a": {Count: 84}, "b": {Count: 16}}},
		{"each of many writes returns what it put", nil,
			atOnce(40, 40, func(i int) []table.Op {
				return []table.Op{put(fmt.Sprint("k", i), row{})}
			}), done, nil},
	}
}

// atOnce lets workers write at the same time. Exactly pass of them must succeed,
// and the others must be refused. What successful workers put must be returned to
// them and be there in the end; single updates must each see a different count.
func atOnce(workers, pass int, write func(worker int) []table.Op) action {
	return func(s *state) error {
		var mu sync.Mutex
		passed, made, counts := 0, items{}, map[int64]bool{}
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				ops := write(i)
				shown, err := s.try(ops...)
				for tries := 0; errors.Is(err, table.ErrBusy) && tries < 200; tries++ { // none of it happened
					shown, err = s.try(ops...)
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					s.wantErr("a worker", err, refused(0))
					return
				}
				passed++
				for _, op := range ops {
					counts[shown[op.Key.SK].Count] = true
					put, ok := op.Value.(row)
					if ok {
						made[op.Key.SK] = put
					}
					if ok && s.way == byOthers && !reflect.DeepEqual(shown[op.Key.SK], put) {
						s.Errorf("%s: put was %+v, the page has %+v",
							s.way, put, shown[op.Key.SK])
					}
				}
			})
		}
		all.Wait()
		maps.Copy(s.want, made)
		if passed != pass {
			s.Errorf("%s: %d of %d succeeded, want %d", s.way, passed, workers, pass)
		}
		if ops := write(0); s.way == byOthers &&
			len(ops) == 1 &&
			ops[0].Kind == table.KindUpdate &&
			len(counts) != pass {
			s.Errorf("%s: %d updates saw %d counts", s.way, passed, len(counts))
		}
		return nil
	}
}
