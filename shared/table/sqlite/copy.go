package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// CopyFile writes what a database holds at one moment to a new file, durably.
// The database may be in use, by this process and others, which it does not
// hold up. The new file is one that Open takes, and not damaged.
func CopyFile(ctx context.Context, from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("copying the table: %w: %s", os.ErrExist, to)
	}
	err := copyFile(ctx, from, to)
	if err == nil {
		err = examine(ctx, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("copying the table in %s: %w", from, translate(err)), os.RemoveAll(to))
	}
	return nil
}

func copyFile(ctx context.Context, from, to string) (err error) {
	db, err := sql.Open("sqlite", dataSource(from, 10*time.Second, "mode=ro"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// VACUUM INTO takes an empty file, and makes one of its own that others may read.
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return err
	}
	return errors.Join(f.Sync(), syncFolder(filepath.Dir(to)))
}

// examine looks for damage, much of which is copied unseen: SQLite keeps no
// checksums, and of a long item looks at the beginning alone.
func examine(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dataSource(path, 10*time.Second, "mode=ro"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, found)
	}
	var damaged int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM items WHERE NOT json_valid(CAST(doc AS TEXT))`).Scan(&damaged); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("%w: %d items are no JSON", ErrDamaged, damaged)
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
