package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/table"
)

func testDB(t *testing.T, o Options) *DB {
	t.Helper()
	db, err := Open(filepath.Join(t.TempDir(), "table.db"), o)
	must(t, err)
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
	op, err := encode(put(sk))
	must(t, err)
	r := newRequest(ctx, 0, func(tx *transaction) error {
		_, err := tx.apply([]table.Op{op})
		return err
	})
	r.relaxed = false
	return r
}

func put(sk string) table.Op { return table.Put(table.Key{PK: "p", SK: sk}, struct{}{}) }

func storedKeys(t *testing.T, db *DB) []string {
	t.Helper()
	page, err := db.Query(t.Context(), table.Query{PK: "p", Limit: table.MaxPage})
	must(t, err)
	var sks []string
	for _, item := range page.Items {
		sks = append(sks, item.Key.SK)
	}
	return sks
}

func TestAFailedRequestDoesNotFailOthers(t *testing.T) {
	t.Parallel()
	db := testDB(t, Options{})
	w, errBroken := idle(t, db), errors.New("broken")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	broken := newRequest(t.Context(), 0, func(tx *transaction) error {
		if err := putRequest(t, t.Context(), "half").do(tx); err != nil {
			return err
		}
		return &statementError{errBroken}
	})
	refused := newRequest(t.Context(), 0, func(*transaction) error { return &table.ConditionError{Op: 3} })
	batch := []*request{
		putRequest(t, t.Context(), "a"), refused, broken, putRequest(t, ended, "late"),
		putRequest(t, t.Context(), "b"),
	}
	w.commitAll(batch)
	for i, want := range []error{nil, table.ErrCondition, errBroken, context.Canceled, nil} {
		expect.Err(t, fmt.Sprint("request ", i), <-batch[i].done, want)
	}
	expect.Equal(t, "the stored keys", storedKeys(t, db), []string{"a", "b"})
}

func TestARequestIsAnsweredByASyncThatBeganAfterItsCommit(t *testing.T) {
	t.Parallel()
	db := testDB(t, Options{})
	began, goOn := make(chan struct{}), make(chan struct{})
	db.writer.syncer.flush = func() error { began <- struct{}{}; <-goOn; return nil }
	first := make(chan error, 1)
	go func() { first <- db.Write(t.Context(), put("first")) }()
	<-began // the sync for the first
	second := make(chan error, 1)
	go func() { second <- db.Write(t.Context(), put("second")) }()
	must(t, db.Write(t.Context(), put("relaxed").Relax())) // while the sync goes on
	for len(storedKeys(t, db)) < 3 {                       // until the second is committed
		time.Sleep(time.Millisecond)
	}
	select {
	case <-first:
		t.Error("the first was answered before its sync was done")
	case <-second:
		t.Error("the second was answered before its sync began")
	default:
	}
	goOn <- struct{}{}
	must(t, <-first)
	<-began // a sync of its own for the second
	select {
	case <-second:
		t.Error("the second was answered by a sync that had begun before its commit")
	default:
	}
	goOn <- struct{}{}
	must(t, <-second)
}

func TestNothingIsWrittenAfterASyncFailed(t *testing.T) {
	t.Parallel()
	db := testDB(t, Options{})
	db.writer.syncer.flush = func() error { return syscall.ENOSPC }
	for range 2 {
		err := db.Write(t.Context(), put("a"))
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, table.ErrFull) { // ErrFull says that nothing was written
			t.Fatalf("got error %v", err)
		}
	}
	db.writer.syncer.flush = func() error { return nil }
	expect.Err(t, "a write after that", db.Write(t.Context(), put("b")), syscall.ENOSPC)
	if got := storedKeys(t, db); slices.Contains(got, "b") {
		t.Errorf("the stored keys are %q", got)
	}
	if db.Failed().Load() == nil {
		t.Error("the failure is forgotten")
	}
}

func TestOnlyASyncedTableSyncs(t *testing.T) {
	t.Parallel()
	for noSync, want := range map[bool]string{false: "1", true: "0"} {
		db := testDB(t, Options{NoSync: noSync})
		mode, err := db.writer.conn.ask("PRAGMA synchronous")
		if err != nil || mode[0] != want || (db.writer.syncer == nil) != noSync {
			t.Errorf("without sync %v: synchronous is %v, want %s, error %v", noSync, mode, want, err)
		}
	}
}

func TestABatchTakesWaitingRequestsUpToItsBounds(t *testing.T) {
	t.Parallel()
	fill := func(n, size int) *writer {
		w := &writer{queue: make(chan *request, maxQueue)}
		for range n {
			w.queue <- &request{size: size}
		}
		return w
	}
	for name, tc := range map[string]struct{ n, size, want int }{
		"nothing waits":     {want: 1},
		"a few wait":        {n: 5, size: 1000, want: 6},
		"many wait":         {n: 1000, size: 1000, want: maxBatch},
		"large ones wait":   {n: 10, size: maxBatchBytes / 2, want: 2},
		"a huge one begins": {n: 10, size: 2 * maxBatchBytes, want: 1},
	} {
		expect.Equal(t, name, len(fill(tc.n, tc.size).batch(&request{size: tc.size})), tc.want)
	}
	w := fill(3, 0)
	close(w.queue)
	expect.Equal(t, "from a closed queue", len(w.batch(&request{})), 4)
}

// TestAGroupThatFailsCountsNothingTwice: SQLite may undo a transaction by itself
// when the disk is full, and what is written after that stays.
func TestAGroupThatFailsCountsNothingTwice(t *testing.T) {
	t.Parallel()
	db := testDB(t, Options{})
	db.LimitPages(t, 20)
	w, counter := idle(t, db), table.Key{PK: "p", SK: "counter"}
	const rounds = 20
	for range rounds {
		count, err := newWrite(t.Context(), []table.Op{table.Update(counter).Add("n", 1).Relax()})
		large, failed := newWrite(t.Context(), []table.Op{table.Update(table.Key{
			PK: "p",
			SK: "large",
		}).Set("x", strings.Repeat("x", 300_000)).Relax()})
		large.reading = &reading{Query: table.Query{PK: "p", Limit: 1}}
		w.commitAll([]*request{count, large})
		must(t, errors.Join(err, failed, <-count.done))
		expect.Err(t, "the large one", <-large.done, table.ErrFull)
	}
	var got struct{ N int }
	if err := db.Get(t.Context(), counter, &got); err != nil || got.N != rounds {
		t.Errorf("counted %d of %d, %v", got.N, rounds, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
