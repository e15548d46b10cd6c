package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// CopyFile writes what a database holds at one moment to a new file, whose bytes
// are durable then, but not yet its name.
// The database may be in use, by this process and others, which it does not
// hold up. The new file is one that Open takes, and not damaged.
func CopyFile(ctx context.Context, from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("copying the table: %w: %s", os.ErrExist, to)
	}
	err := copyFile(ctx, from, to)
	if err == nil {
		err = examine(to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("copying the table in %s: %w", from, translate(err)), os.RemoveAll(to))
	}
	return nil
}

func copyFile(ctx context.Context, from, to string) (err error) {
	conn, err := connect(from, defaultBusy, "mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// VACUUM INTO takes an empty file, and makes one of its own that others may read.
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := conn.run(ctx, `VACUUM INTO ?`, to); err != nil {
		return err
	}
	return f.Sync()
}

// examine looks for damage, much of which is copied unseen: SQLite keeps no
// checksums, and of a long item looks at the beginning alone.
func examine(path string) (err error) {
	conn, err := connect(path, defaultBusy, "mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	row, err := conn.ask(`PRAGMA integrity_check(1)`)
	if err == nil && row[0] != "ok" {
		err = fmt.Errorf("%w: %v", ErrDamaged, row[0])
	}
	if err != nil {
		return err
	}
	row, err = conn.ask(`SELECT count(*) FROM items WHERE NOT json_valid(CAST(doc AS TEXT))`)
	if err == nil && row[0] != int64(0) {
		err = fmt.Errorf("%w: %v items are no JSON", ErrDamaged, row[0])
	}
	return err
}
