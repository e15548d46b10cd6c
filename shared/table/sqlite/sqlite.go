// Package sqlite implements table.Table on one SQLite file, which also holds small objects of a
// blob.Store (see Blobs). Start reading with Open; write.go and writer.go follow a write.
//
// Other processes may have the file open and write to it at the same time.
//
// Writes are committed in groups: one goroutine takes all waiting writes, and one commit serves
// them together. Another goroutine syncs the log, so that the next group can be committed
// meanwhile. A write is answered after a sync that began after its commit. Readers may see it a
// moment earlier.
package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrDamaged is returned by Open for a file that is not a database of this
	// program, or a damaged one.
	ErrDamaged = errors.New("the table is damaged or was not made by this program")
	// ErrOlder is returned by Open for a file made by a version from before the first release.
	ErrOlder = errors.New("the table was made by a version from before the first release, which this one cannot read")
	// ErrNewer is returned by Open for a file made by a later version of this
	// program.
	ErrNewer = errors.New("the table was made by a newer version of this program")
	// ErrClosed is returned by every write after Close.
	ErrClosed = errors.New("the table is closed")
)

// defaultBusy is how long the file may be locked by another process before
// calls fail with table.ErrBusy.
const defaultBusy = 10 * time.Second

// Options change how the file is used. The zero value is the safe choice.
type Options struct {
	// NoSync never waits for durable storage: a loss of power may lose writes
	// that were answered, or damage the file.
	NoSync bool
	// Log is how many bytes the log may have before a checkpoint copies it to the file, which
	// then grows by at most as many; 0 means 4,000 pages of 4 KiB, which is the most.
	Log int64
	// Busy is how long to wait for other processes; 0 is 10 seconds.
	Busy time.Duration
}

// DB is a table.Table. Its methods are safe for concurrent use.
type DB struct {
	readers readers
	writer  *writer
	close   func() error // once
}

// Open opens the table in the file at path. If the file is missing, it is made,
// readable only by its owner. The error names the file and matches ErrDamaged,
// ErrOlder, ErrNewer, table.ErrBusy, table.ErrFull or the operating system's error.
func Open(path string, o Options) (*DB, error) {
	if o.Busy <= 0 {
		o.Busy = defaultBusy
	}
	if err := makeFile(path); err != nil {
		return nil, fmt.Errorf("opening the table in %s: %w", path, translate(err))
	}
	w, err := openWriter(path, o)
	if err != nil {
		return nil, explain(path, err)
	}
	go w.run()
	db := &DB{writer: w}
	db.close = sync.OnceValue(func() error {
		w.stop()
		if db.readers == nil {
			return w.close()
		}
		return errors.Join(db.readers.close(cap(db.readers)), w.close())
	})
	// More readers than processors, because the system may suspend a read in the middle.
	if db.readers, err = openReaders(path, o.Busy, max(8, 2*runtime.GOMAXPROCS(0))); err != nil {
		return nil, explain(path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// Failed holds the first failure to sync the table, or other files on its disk; the code that
// syncs them stores it there. After that, nothing is written.
func (db *DB) Failed() *atomic.Pointer[error] { return &db.writer.failed }

// Close waits for the writes that have begun, then closes the file.
func (db *DB) Close() error { return db.close() }
