package sqlite

import (
	"fmt"
	"testing"
)

// LeaveLog leaves folding the log into the file to others.
func (db *DB) LeaveLog() error {
	return db.writer.conn.run("PRAGMA wal_autocheckpoint = 0")
}

// LimitPages makes the file full at n pages.
func (db *DB) LimitPages(t *testing.T, n int) {
	t.Helper()
	must(t, db.writer.conn.run(fmt.Sprintf("PRAGMA max_page_count = %d", n)))
}
