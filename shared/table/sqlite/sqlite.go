// Package sqlite keeps the table in one SQLite file. Other processes may have
// the file open and write to it at the same time.
//
// Writes are committed in groups: one goroutine takes all that wait, and one
// commit serves them together. Another syncs the log, so that the next group is
// committed meanwhile; a write is answered when a sync that began after its
// commit is done. Other readers may see it a moment before.
//
// The file also holds small objects of a blob.Store: see Blobs.
package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

var (
	// ErrDamaged is returned by Open for a file that is no database of this
	// program, or no longer a whole one.
	ErrDamaged = errors.New("the table is damaged or was not made by this program")
	// ErrNewer is returned by Open for a file whose layout is of a later
	// version of this program.
	ErrNewer = errors.New("the table was made by a newer version of this program")
	// ErrClosed is returned by every write after Close.
	ErrClosed = errors.New("the table is closed")
)

// defaultBusy is how long the file may be locked by another process before
// calls fail with table.ErrBusy.
const defaultBusy = 10 * time.Second

// Options change how the file is used. The zero value is the safe choice.
type Options struct {
	// NoSync never waits for durable storage: a loss of power may take away
	// what was answered, or damage the file.
	NoSync bool
	// Busy is how long to wait for other processes; 0 is 10 seconds.
	Busy time.Duration
}

// DB is a table.Table. Its methods are safe for concurrent use.
type DB struct {
	readers *readers
	writer  *writer
	delayed *delayed
	closing sync.Once
	closed  error
}

// Open opens the table in the file at path, and makes it, readable by its owner
// alone, if it is missing. Its error names the file and matches ErrDamaged,
// ErrNewer, table.ErrBusy, table.ErrFull or the operating system's error.
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
	db.delayed = newDelayed(db)
	if db.readers, err = openReaders(path, o.Busy, maxReaders()); err != nil {
		return nil, explain(path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// maxReaders is the number of connections that read at once. A read is short,
// but may be put off by the system in the middle.
func maxReaders() int { return max(8, 2*runtime.GOMAXPROCS(0)) }

// Close waits for the writes that were begun, then closes the file.
func (db *DB) Close() error {
	db.delayed.stop()
	db.writer.stop()
	db.closing.Do(func() {
		if db.readers != nil {
			db.closed = db.readers.close(cap(db.readers.idle))
		}
		db.closed = errors.Join(db.closed, db.writer.close())
	})
	return db.closed
}
