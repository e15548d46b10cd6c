package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"ferry/shared/table"
)

func testDB(t *testing.T, o Options) *DB {
	t.Helper()
	db, err := Open(filepath.Join(t.TempDir(), "table.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// idle stops the goroutine that writes, so that a test can do its work.
func idle(t *testing.T, db *DB) *writer {
	t.Helper()
	db.writer.stop()
	return db.writer
}

func putRequest(t *testing.T, ctx context.Context, sk string) *request {
	t.Helper()
	op, err := encode(table.Put(table.Key{PK: "p", SK: sk}, struct{}{}))
	if err != nil {
		t.Fatal(err)
	}
	r := newRequest(ctx)
	r.do = func(tx *transaction) error {
		_, err := tx.apply([]operation{op})
		return err
	}
	return r
}

func storedKeys(t *testing.T, db *DB) []string {
	t.Helper()
	page, err := db.Query(t.Context(), table.Query{PK: "p", Limit: table.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	var sks []string
	for _, item := range page.Items {
		sks = append(sks, item.Key.SK)
	}
	return sks
}

func TestARequestThatFailsTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	db := testDB(t, Options{})
	w := idle(t, db)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	broken := newRequest(t.Context())
	broken.do = func(tx *transaction) error {
		if err := putRequest(t, t.Context(), "half").do(tx); err != nil {
			return err
		}
		return &statementError{errors.New("broken")}
	}
	refused := newRequest(t.Context())
	refused.do = func(*transaction) error { return &table.ConditionError{Op: 3} }
	batch := []*request{putRequest(t, t.Context(), "a"), refused, broken, putRequest(t, ended, "late"), putRequest(t, t.Context(), "b")}
	w.commitAll(batch)
	for i, want := range []func(error) bool{
		func(err error) bool { return err == nil },
		func(err error) bool { return errors.Is(err, table.ErrCondition) },
		func(err error) bool { return err != nil && !errors.Is(err, table.ErrCondition) },
		func(err error) bool { return errors.Is(err, context.Canceled) },
		func(err error) bool { return err == nil },
	} {
		if err := <-batch[i].done; !want(err) {
			t.Errorf("request %d got error %v", i, err)
		}
	}
	if got := storedKeys(t, db); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("stored are %q, want a and b", got)
	}
}

func TestOnlyABatchOfRelaxedRequestsDoesNotWaitForStorage(t *testing.T) {
	t.Parallel()
	const off, normal, full = 0, 1, 2
	tests := map[string]struct {
		options Options
		relaxed []bool
		want    int
	}{
		"none relaxed": {Options{}, []bool{false, false}, full},
		"all relaxed":  {Options{}, []bool{true, true}, normal},
		"some relaxed": {Options{}, []bool{true, false, true}, full},
		"no sync":      {Options{NoSync: true}, []bool{false}, off},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := idle(t, testDB(t, tc.options))
			for range 2 { // as the mode may have to change and change back
				var batch []*request
				for _, relaxed := range tc.relaxed {
					r := putRequest(t, t.Context(), "k")
					r.relaxed = relaxed
					batch = append(batch, r)
				}
				w.commitAll(batch)
				var got int
				if err := w.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got); err != nil || got != tc.want {
					t.Errorf("synchronous is %d, want %d, error %v", got, tc.want, err)
				}
				opposite := putRequest(t, t.Context(), "k")
				opposite.relaxed = tc.want == full
				w.commitAll([]*request{opposite})
			}
		})
	}
}

func TestABatchTakesWhatWaitsUpToItsBounds(t *testing.T) {
	t.Parallel()
	fill := func(n, size int) *writer {
		w := &writer{queue: make(chan *request, maxQueue)}
		for range n {
			w.queue <- &request{size: size}
		}
		return w
	}
	for name, tc := range map[string]struct{ n, size, want int }{
		"nothing waits":     {0, 0, 1},
		"a few wait":        {5, 1000, 6},
		"many wait":         {1000, 1000, maxBatch},
		"large ones wait":   {10, maxBatchBytes / 2, 2},
		"a huge one begins": {10, 2 * maxBatchBytes, 1},
	} {
		if got := len(fill(tc.n, tc.size).batch(&request{size: tc.size})); got != tc.want {
			t.Errorf("%s: %d requests are taken, want %d", name, got, tc.want)
		}
	}
	w := fill(3, 0)
	close(w.queue)
	if got := len(w.batch(&request{})); got != 4 {
		t.Errorf("of a closed queue %d requests are taken, want 4", got)
	}
}
