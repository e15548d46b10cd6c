package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// CopyFile writes a snapshot of a database over another file, which need not exist. The file's
// bytes are then durable, but not yet its name; after an error the file is unfinished. The
// database may be in use, by this process and others, and CopyFile does not hold them up. Open
// accepts the new file. Its tree is known to be undamaged, but single items may not be JSON.
func CopyFile(ctx context.Context, from, to string) error {
	err := inspect(from, func(conn *connection) error { return copyAll(ctx, conn, to) })
	if err == nil {
		err = inspect(to, examine)
	}
	if err != nil {
		return fmt.Errorf("copying the table in %s: %w", from, translate(err))
	}
	return nil
}

// inspect opens a file read-only while do runs.
func inspect(path string, do func(*connection) error) error {
	conn, err := connect(path, defaultBusy, "mode=ro")
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close())
}

// CheckSchema refuses a file with triggers or views, which this program does not make: they
// would run when it is used.
func CheckSchema(path string) error {
	err := inspect(path, func(conn *connection) error {
		row, err := conn.ask(`SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT 1`)
		if err == nil && len(row) > 0 {
			err = fmt.Errorf("%w: it has triggers or views", ErrDamaged)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("looking at the table in %s: %w", path, translate(err))
	}
	return nil
}

// Marked reports whether a regular file begins like those of this program, damaged or not. An
// unfinished copy may also be empty, or begin like any database, or with zeros in that place.
func Marked(path string, unfinished bool) bool {
	const magic, markAt = "SQLite format 3\x00", 68 // the file format of SQLite, 1.3
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [markAt + 4]byte
	n, _ := io.ReadFull(f, head[:])
	begins := string(head[:len(magic)])
	if unfinished {
		return n == 0 || begins == magic || begins == string(make([]byte, len(magic)))
	}
	return begins == magic && binary.BigEndian.Uint32(head[markAt:]) == applicationID
}

// copyAll makes an empty private file, which VACUUM INTO accepts: others could read a file that
// VACUUM INTO made itself.
func copyAll(ctx context.Context, conn *connection, to string) error {
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_ = f.Chmod(0o600) // not every file system has modes
	conn.SetInterrupt(ctx.Done())
	if err = conn.run(`VACUUM INTO ?`, to); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, ctx.Err(), f.Close())
}

// examine looks for damage, most of which copying does not notice: SQLite keeps no
// checksums.
func examine(conn *connection) error {
	row, err := conn.ask(`PRAGMA integrity_check(1)`)
	if err == nil && row[0] != "ok" {
		err = fmt.Errorf("%w: %v", ErrDamaged, row[0])
	}
	return err
}
