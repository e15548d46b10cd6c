package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// CopyFile writes the content of a database at one moment to a new file. The
// file's bytes are then durable, but not yet its name. The database may be in use,
// by this process and others, and CopyFile does not hold them up. Open accepts the
// new file, which is known to be undamaged.
func CopyFile(ctx context.Context, from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("copying the table: %w: %s", os.ErrExist, to)
	}
	err := inspect(from, func(conn *connection) error { return copyAll(ctx, conn, to) })
	if err == nil {
		err = inspect(to, examine)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("copying the table in %s: %w", from, translate(err)), os.RemoveAll(to))
	}
	return nil
}

// inspect opens a file for reading only, as long as do runs.
func inspect(path string, do func(*connection) error) error {
	conn, err := connect(path, defaultBusy, "mode=ro")
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close())
}

// copyAll makes an empty private file, which VACUUM INTO accepts: a file that it
// made itself could be read by others.
func copyAll(ctx context.Context, conn *connection, to string) error {
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	conn.SetInterrupt(ctx.Done())
	if err = conn.run(`VACUUM INTO ?`, to); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, ctx.Err(), f.Close())
}

// examine looks for damage. Copying does not notice most of it: SQLite keeps no
// checksums, and it reads only the beginning of a long item.
func examine(conn *connection) error {
	row, err := conn.ask(`PRAGMA integrity_check(1)`)
	if err == nil && row[0] != "ok" {
		err = fmt.Errorf("%w: %v", ErrDamaged, row[0])
	}
	if err != nil {
		return err
	}
	row, err = conn.ask(`SELECT count(*) FROM items WHERE NOT json_valid(CAST(doc AS TEXT))`)
	if err == nil && row[0] != "0" {
		err = fmt.Errorf("%w: %v items are not JSON", ErrDamaged, row[0])
	}
	return err
}
