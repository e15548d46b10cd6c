package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/table/tabletest"
)

func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "table.db")
}

func open(t testing.TB, path string, o sqlite.Options) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(path, o)
	must(t, err)
	t.Cleanup(func() {
		must(t, db.Close())
	})
	return db
}

func TestConformance(t *testing.T) {
	t.Parallel()
	shared := open(t, newPath(t), sqlite.Options{})
	for what, of := range map[string]func(*testing.T) table.Table{
		"each test has its own unsynced file": func(t *testing.T) table.Table {
			return open(t, newPath(t), sqlite.Options{NoSync: true})
		},
		"all tests share one synced file": func(*testing.T) table.Table { return shared },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tabletest.Run(t, of)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr checks an error as errors.Is does.
func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// wantNumber checks the number in an item.
func wantNumber(t testing.TB, db *sqlite.DB, key table.Key, want int64) {
	t.Helper()
	var got number
	if err := db.Get(t.Context(), key, &got); err != nil || got.N != want {
		t.Errorf("the number of %q is %d, want %d, error %v", key, got.N, want, err)
	}
}

// wantNone checks that a worker has no items.
func wantNone(t testing.TB, db *sqlite.DB, worker int) {
	t.Helper()
	page, err := db.Query(t.Context(), table.Query{PK: numberKey(worker, 0).PK, Limit: 100})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%d items are stored, error %v", len(page.Items), err)
	}
}
