package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/table/tabletest"
)

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
	t.Run("each test has its own unsynced file", func(t *testing.T) {
		t.Parallel()
		tabletest.Run(t, func(t *testing.T) table.Table {
			return open(t, filepath.Join(t.TempDir(), "table.db"), sqlite.Options{NoSync: true})
		})
	})
	t.Run("all tests share one synced file", func(t *testing.T) {
		db := open(t, filepath.Join(t.TempDir(), "table.db"), sqlite.Options{})
		t.Run("suite", func(t *testing.T) {
			tabletest.Run(t, func(*testing.T) table.Table { return db })
		})
	})
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
