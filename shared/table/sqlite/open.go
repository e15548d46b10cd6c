package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

	"ferry/shared/retry"
	"ferry/shared/table"
)

// layout is the version of the file's layout, kept in its user_version.
const layout = 2

// applicationID marks the file as one of this program ("Fery" in ASCII).
const applicationID = 0x46657279

// schema makes the layout in an empty file. A TEXT sorts by its bytes, as the port
// demands. The index that finds expired items has only items with an expiry. Blobs have
// rowids: in a tree of long rows, each comparison of keys would read a whole row.
const schema = `
CREATE TABLE items (
	pk  TEXT NOT NULL,
	sk  TEXT NOT NULL,
	doc BLOB NOT NULL,
	ttl INTEGER,
	PRIMARY KEY (pk, sk)
) WITHOUT ROWID;
CREATE INDEX items_ttl ON items (ttl) WHERE ttl IS NOT NULL;
CREATE TABLE blobs (
	area     TEXT NOT NULL,
	key      TEXT NOT NULL,
	modified INTEGER NOT NULL,
	content  BLOB NOT NULL,
	UNIQUE (area, key)
);
PRAGMA application_id = 0x46657279;
PRAGMA user_version = 2;
`

// makeFile makes the file and its directory if they are missing, so that they are
// private from the first moment. It does not open an existing file, as closing it
// would drop the locks that other handles of this process hold.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// dataSource names the file to the driver. The path is escaped, as it may contain
// characters with a meaning in a URI.
func dataSource(path, params string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	u := url.URL{Scheme: "file", Path: path}
	return fmt.Sprintf("%s?%s", u.String(), params)
}

// prepareFile brings the file into the state that all connections rely on.
func prepareFile(conn *connection, busy time.Duration) error {
	if err := checkLayout(conn); err != nil {
		return err
	}
	if err := useWAL(conn, busy); err != nil {
		return fmt.Errorf("switching to a write-ahead log: %w", err)
	}
	if err := makeSchema(conn); err != nil {
		return fmt.Errorf("making the layout: %w", err)
	}
	if _, err := conn.ask(`SELECT 1 FROM items LIMIT 1`); err != nil {
		return fmt.Errorf("reading the first item: %w", err)
	}
	return nil
}

// checkLayout refuses files of other programs before anything in them is changed.
func checkLayout(conn *connection) error {
	row, err := conn.ask(`SELECT
		(SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id),
		(SELECT count(*) FROM sqlite_master)`)
	if err != nil {
		return fmt.Errorf("reading the layout: %w", err)
	}
	version, _ := strconv.Atoi(row[0]) // always a number
	switch ours := row[1] == strconv.Itoa(applicationID); {
	case ours && version < layout:
		return ErrOlder
	case ours && version > layout:
		return ErrNewer
	case !ours && !slices.Equal(row, []string{"0", "0", "0"}):
		return ErrDamaged
	}
	return nil
}

// useWAL retries the switch while another process is making it too, since SQLite does not wait
// by itself here.
func useWAL(conn *connection, busy time.Duration) (err error) {
	const pause = 5 * time.Millisecond
	for range (retry.Backoff{First: pause, Longest: pause, For: busy}).Loop(context.Background()) {
		err = conn.run(`PRAGMA journal_mode = WAL`)
		if err == nil || !errors.Is(translate(err), table.ErrBusy) {
			break
		}
	}
	return err
}

// makeSchema makes the layout, unless another process has made it.
func makeSchema(conn *connection) error {
	if err := conn.run(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	row, err := conn.ask(`SELECT user_version FROM pragma_user_version`)
	if err == nil && row[0] == "0" {
		err = conn.run(schema)
	}
	if err != nil {
		return errors.Join(err, conn.run(`ROLLBACK`))
	}
	return conn.run(`COMMIT`)
}

// explain says in one sentence why a file could not be opened. The operating
// system's error is plainer than SQLite's.
func explain(path string, err error) error {
	err = translate(err)
	known := []error{ErrOlder, ErrNewer, ErrDamaged, table.ErrBusy, table.ErrFull}
	if !slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) }) {
		f, plain := os.OpenFile(path, os.O_RDWR, 0)
		if plain != nil {
			return fmt.Errorf("opening the table: %w", plain)
		}
		err = errors.Join(err, f.Close())
	}
	return fmt.Errorf("opening the table in %s: %w", path, err)
}

// translate wraps the errors of the driver and the operating system that matter to callers in an
// error that they know.
func translate(err error) error {
	switch code := sqlite.ErrCode(err).ToPrimary(); { // the higher bits only say where it happened
	case code == sqlite.ResultFull, errors.Is(
		err,
		syscall.ENOSPC,
	), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", table.ErrFull, err)
	case code == sqlite.ResultBusy, code == sqlite.ResultLocked:
		return fmt.Errorf("%w: %w", table.ErrBusy, err)
	case code == sqlite.ResultCorrupt, code == sqlite.ResultNotADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
