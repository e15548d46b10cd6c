package sqlite

import (
	"fmt"
	"testing"
)

// LimitPages makes the file as good as full beyond n pages.
func (db *DB) LimitPages(t *testing.T, n int) {
	t.Helper()
	if _, err := db.writer.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
		t.Fatal(err)
	}
}
