package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// sample returns an item of about 400 bytes.
func sample(i int) number { return number{N: int64(i), Text: strings.Repeat("x", 380)} }

func filled(b *testing.B) *sqlite.DB {
	b.Helper()
	db := open(b, filepath.Join(b.TempDir(), "table.db"), sqlite.Options{NoSync: true})
	for start := 0; start < 20_000; start += table.MaxOps {
		var ops []table.Op
		for i := start; i < start+table.MaxOps; i++ {
			key := table.Key{PK: fmt.Sprint("user", i/1000), SK: fmt.Sprintf("file%08d", i)}
			ops = append(ops, table.Put(key, sample(i)))
		}
		if err := db.Write(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	return db
}

func BenchmarkGet(b *testing.B) {
	db := filled(b)
	key := table.Key{PK: "user7", SK: "file00007500"}
	for b.Loop() {
		var got number
		if err := db.Get(b.Context(), key, &got); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetMany3(b *testing.B) {
	db := filled(b)
	keys := []table.Key{{PK: "user7", SK: "file00007500"}, {PK: "user8", SK: "file00008500"}, {PK: "user9", SK: "none"}}
	for b.Loop() {
		if _, err := db.GetMany(b.Context(), keys...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery100(b *testing.B) {
	db := filled(b)
	for _, decode := range []bool{false, true} {
		b.Run(fmt.Sprint("decode=", decode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, err := db.Query(b.Context(), table.Query{PK: "user7", Descending: true, After: "file00007500", Limit: 100})
				if err != nil || len(page.Items) != 100 || !page.More {
					b.Fatal(len(page.Items), err)
				}
				for _, item := range page.Items {
					var got number
					if decode && item.Decode(&got) != nil {
						b.Fatal("decoding")
					}
				}
			}
		})
	}
}

// BenchmarkPut compares one writer with 16, whose writes share commits.
func BenchmarkPut(b *testing.B) {
	for name, o := range map[string]sqlite.Options{"synced": {}, "no sync": {NoSync: true}} {
		for _, writers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d writers", name, writers), func(b *testing.B) {
				db := open(b, filepath.Join(b.TempDir(), "table.db"), o)
				var n atomic.Int64
				together(b, writers, func() {
					i := int(n.Add(1))
					if err := db.Write(b.Context(), table.Put(numberKey(0, i), sample(i)).If(table.NotExists())); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}

func BenchmarkRelaxedCounter(b *testing.B) {
	for _, relaxed := range []bool{false, true} {
		b.Run(fmt.Sprint("relaxed=", relaxed), func(b *testing.B) {
			db := open(b, filepath.Join(b.TempDir(), "table.db"), sqlite.Options{})
			op := table.Update(counterKey()).Add("n", 1)
			if relaxed {
				op = op.Relax()
			}
			together(b, 1, func() {
				if err := db.Write(b.Context(), op); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// together makes b.N calls from several goroutines.
func together(b *testing.B, goroutines int, call func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	for range goroutines {
		go func() {
			for left.Add(-1) >= 0 {
				call()
			}
			done <- struct{}{}
		}()
	}
	for range goroutines {
		<-done
	}
}
