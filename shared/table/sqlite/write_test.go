package sqlite_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

func TestAWriteUnderALongLockIsErrBusy(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path, sqlite.Options{Busy: 20 * time.Millisecond})
	other := raw(t, path)
	run(t, other, "BEGIN IMMEDIATE")
	wantErr(t, db.Write(t.Context(), table.Put(numberKey(0, 0), number{})), table.ErrBusy)
	wantErr(t, db.Get(t.Context(), numberKey(0, 0), &number{}), table.ErrNotFound)
	run(t, other, "COMMIT")
	must(t, db.Write(t.Context(), table.Put(numberKey(0, 0), number{})))
}

func TestOpeningALockedFileIsErrBusy(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	other := raw(t, path)
	run(t, other, "BEGIN EXCLUSIVE")
	_, err := sqlite.Open(path, sqlite.Options{Busy: 20 * time.Millisecond})
	wantErr(t, err, table.ErrBusy)
}

func TestAFullMediumFailsOnlyWritesThatNeedRoom(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), sqlite.Options{})
	must(t, db.Write(t.Context(), table.Put(numberKey(0, 0), number{})))
	db.LimitPages(t, 30)
	large := number{Text: strings.Repeat("x", 300_000)}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			wantErr(t, db.Write(t.Context(), table.Put(numberKey(1, i), large)), table.ErrFull)
		})
		wg.Go(func() {
			if err := db.Write(t.Context(), table.Update(numberKey(0, 0)).Add("n", 1)); err != nil {
				t.Errorf("small update %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	wantNumber(t, db, numberKey(0, 0), 20)
	wantNone(t, db, 1)
}

func TestAWriteIsNotDoneIfItsContextEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path, sqlite.Options{})
	other := raw(t, path)
	run(t, other, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			wantErr(t, db.Write(ctx, table.Put(numberKey(0, i), number{})), context.Canceled)
		})
	}
	cancel()
	wg.Wait()
	run(t, other, "COMMIT")
	must(t, db.Write(t.Context(), table.Put(numberKey(1, 0), number{})))
	wantNone(t, db, 0)
}

func TestCloseAnswersWaitingWritesAndRefusesLaterOnes(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var stored []int
	for i := range 500 {
		wg.Go(func() {
			err := db.Write(t.Context(), table.Put(numberKey(0, i), number{}))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				stored = append(stored, i)
			} else if !errors.Is(err, sqlite.ErrClosed) {
				t.Errorf("got error %v, want none or ErrClosed", err)
			}
		})
	}
	must(t, db.Close())
	wg.Wait()
	wantErr(t, db.Write(t.Context(), table.Delete(numberKey(0, 0))), sqlite.ErrClosed)
	again := open(t, path, sqlite.Options{})
	for _, i := range stored {
		must(t, again.Get(t.Context(), numberKey(0, i), &number{}))
	}
}

func TestDeleteExpiredRemovesOnlyExpiredItems(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), sqlite.Options{})
	now := time.Unix(1_800_000_000, 0)
	past, future := now.Add(-time.Second), now.Add(time.Second)
	put := func(name string) table.Op { return table.Put(table.Key{PK: "p", SK: name}, number{}) }
	update := func(name string) table.Op { return table.Update(table.Key{PK: "p", SK: name}).Add("n", 1) }
	steps := map[string]struct {
		ops  []table.Op
		kept bool
	}{
		"put that expires now":       {[]table.Op{put("b").Expire(now)}, false},
		"put without expiry":         {[]table.Op{put("d")}, true},
		"update keeps the expiry":    {[]table.Op{put("e").Expire(past), update("e")}, false},
		"update changes the expiry":  {[]table.Op{put("f").Expire(past), update("f").Expire(future)}, true},
		"update adds an expiry":      {[]table.Op{put("g"), update("g").Expire(past)}, false},
		"put removes the expiry":     {[]table.Op{put("h").Expire(past), put("h")}, true},
		"update creates with expiry": {[]table.Op{update("i").Expire(past)}, false},
	}
	gone := 0
	for _, step := range steps {
		for _, op := range step.ops {
			must(t, db.Write(t.Context(), op))
		}
		if !step.kept {
			gone++
		}
	}
	for _, want := range []int{gone, 0} {
		if n, err := db.DeleteExpired(t.Context(), now); n != want || err != nil {
			t.Errorf("removed %d, want %d, error %v", n, want, err)
		}
	}
	for name, step := range steps {
		err := db.Get(t.Context(), step.ops[0].Key, &number{})
		if step.kept && err != nil || !step.kept && !errors.Is(err, table.ErrNotFound) {
			t.Errorf("%s: got error %v, want it kept: %t", name, err, step.kept)
		}
	}
}

func TestDeleteExpiredWorksInBatches(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), sqlite.Options{NoSync: true})
	const n = 1234
	for start := 0; start < n; start += table.MaxOps {
		var ops []table.Op
		for i := start; i < min(n, start+table.MaxOps); i++ {
			ops = append(ops, table.Put(numberKey(0, i), number{}).Expire(time.Unix(int64(i), 1)))
		}
		must(t, db.Write(t.Context(), ops...))
	}
	if removed, err := db.DeleteExpired(t.Context(), time.Unix(n, 0)); removed != n || err != nil {
		t.Errorf("removed %d, want %d, error %v", removed, n, err)
	}
}

// TestACheckLosesNoUpdateOfItsItem: a group of requests holds the update back until it commits.
func TestACheckLosesNoUpdateOfItsItem(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), sqlite.Options{})
	const workers, each = 20, 20
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				for _, ops := range [][]table.Op{
					{table.Update(counterKey()).Add("n", 1)},
					{table.Put(numberKey(w, i), number{}), table.Check(counterKey(), table.Exists())},
				} {
					if err := db.Write(t.Context(), ops...); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	wantNumber(t, db, counterKey(), workers*each)
}
