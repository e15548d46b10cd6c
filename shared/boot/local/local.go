// Package local opens the ports on one machine: a table in a SQLite file, large files
// in folders and small ones beside the table, the link key in a file that only its
// owner can read, and an inbox for mail and text messages. With them it runs all of
// Ferry in one process. Start reading with Open, then NewService.
package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// The names of files in the data folder.
const (
	TableName  = "table.sqlite"
	KeyName    = "link.key"
	SecretName = "webhook.secret"
)

var (
	// ErrNoData is returned by Open if data must exist and there is none.
	ErrNoData = errors.New("there is no Ferry data here")
	// ErrNoTable is returned by Open for data without its table. With a new table,
	// all files would count as leftovers and be removed.
	ErrNoTable = errors.New(TableName + " is missing or empty, but other Ferry data exists; " +
		"restore it from a backup, or start over in another directory")
	// ErrNoKey is returned by Open if data must exist and its link key is lost.
	ErrNoKey = errors.New("the file is missing: put it back from a backup, " +
		"or start the service, which makes a new one; links that were sent before are then dead")
	// ErrKey is returned by Open for a damaged link key.
	ErrKey = errors.New("the file is damaged")
)

// Options say how the data is opened.
type Options struct {
	// Existing creates nothing: missing data is ErrNoData.
	Existing bool
	// NoSync never waits for the disk, so a power failure can lose what was answered.
	// It is for comparisons with servers that never wait either.
	NoSync bool
	// Reserve is how many bytes of the disk uploads leave free for everything else, at most a
	// tenth of the file system.
	Reserve int64
	// Hash has the costs of password hashes; zero is the default.
	Hash auth.Params
	Now  func() time.Time // nil is time.Now
	Log  *slog.Logger     // nil logs nothing
}

// Data is the opened data of one machine. Close it after use.
type Data struct {
	Ports service.Ports
	Table *sqlite.DB
	Disk  *disk.Store
	Dir   string // absolute
}

// Open opens the data in a folder, which it makes if needed. If the link key is
// missing, it makes a new one and logs a warning: links sent before are dead. If the
// data must exist, it returns ErrNoKey instead.
func Open(dir string, o Options) (*Data, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log, o.Hash = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Hash, auth.DefaultParams())
	hasher, err := auth.NewHasher(o.Hash, rand.Reader, o.Now)
	if err != nil {
		return nil, err
	}
	d, err := openStores(dir, o)
	if err != nil {
		return nil, err
	}
	key, made, err := linkKey(d.Dir, o)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if made {
		o.Log.Warn("the link key was missing beside existing data and was replaced by a new one: all links that were sent before are dead; "+
			"to bring them back, stop Ferry and put the old file in its place", "file", filepath.Join(d.Dir, KeyName))
	}
	d.Ports = service.Ports{
		Ports: auth.Ports{Table: d.Table, Key: key, Hasher: hasher, Throttle: auth.NewThrottle(), Random: rand.Reader, Now: o.Now},
		Blobs: d.Disk, Parts: d.Disk, Free: d.Disk.Room, Known: d.Disk, Log: o.Log,
	}
	return d, nil
}

// openStores opens the table and the files, all that a backup needs.
func openStores(dir string, o Options) (*Data, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	if err := prepare(dir, o); err != nil {
		return nil, err
	}
	reserve := o.Reserve
	if reserve > 0 {
		_, total, err := disk.Space(dir)
		if err != nil {
			return nil, err
		}
		reserve = min(reserve, total/10)
	}
	db, err := OpenTable(filepath.Join(dir, TableName), sqlite.Options{NoSync: o.NoSync, Log: reserve / 4})
	if err != nil {
		return nil, err
	}
	store, err := disk.Open(dir, disk.Options{NoSync: o.NoSync, Reserve: reserve, Small: db.Blobs(), Failed: db.Failed(), Now: o.Now})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Data{Table: db, Disk: store, Dir: dir}, nil
}

// OpenTable opens the table of data in this version's format.
func OpenTable(path string, o sqlite.Options) (*sqlite.DB, error) {
	db, err := sqlite.Open(path, o)
	if err != nil {
		return nil, err
	}
	if err := table.CheckFormat(context.Background(), db); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// Close closes the data. What was answered is safe even without it.
func (d *Data) Close() error { return d.Table.Close() }

// prepare makes the folder and, if it has no table, the link key. The key is made
// before the table, so that a table without a key means that the key was lost.
func prepare(dir string, o Options) error {
	info, err := os.Stat(filepath.Join(dir, TableName))
	if err == nil && info.Size() > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("opening the data directory: %w", err)
	}
	switch {
	case hasRun(dir):
		return fmt.Errorf("%s: %w", dir, ErrNoTable)
	case info != nil: // the first start was killed
		return nil
	case o.Existing:
		return fmt.Errorf("%s: %w", dir, ErrNoData)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	_, _, err = linkKey(dir, o)
	return err
}

// hasRun reports whether Ferry has run in a folder: there are users' files or, as
// small ones are in the table, both what is made before the table and what is made
// after it.
func hasRun(dir string) bool {
	for _, area := range blob.Areas() {
		if found, _ := fs.Glob(os.DirFS(dir), string(area)+"/*/*"); len(found) > 0 {
			return true
		}
	}
	_, noKey := os.Stat(filepath.Join(dir, KeyName))
	_, noArea := os.Stat(filepath.Join(dir, string(blob.Files)))
	return noKey == nil && noArea == nil
}
