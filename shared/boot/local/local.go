// Package local opens the ports on one machine: a table in a SQLite file,
// large files in folders and small ones beside the table, the link key in a file
// that only its owner can read, and an inbox in place of mail and text messages.
// On them it runs all of Ferry in one process. It may import everything but AWS.
// Start reading with Open, then Service.
package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/table/sqlite"
)

// The names of files in the folder.
const (
	tableName  = "table.sqlite"
	keyName    = "link.key"
	secretName = "webhook.secret"
)

var (
	// ErrNoData is returned by Open for a folder without data that must have some.
	ErrNoData = errors.New("there are no data of Ferry here")
	// ErrNoTable is returned by Open for files of users without their table:
	// beside a new one all would count as leftovers and be removed.
	ErrNoTable = errors.New(tableName + " is missing or empty, and the files of users are here; " +
		"put it back from a backup, or begin anew in another directory")
	// ErrKey is returned by Open for a link key that is damaged.
	ErrKey = errors.New("the file is damaged")
)

// Options say how the data are opened.
type Options struct {
	// Existing makes nothing: what is not there is ErrNoData.
	Existing bool
	// NoSync never waits for the disk: a loss of power loses what was
	// answered. For comparisons with servers that never do.
	NoSync bool
	// Hash are the costs of password hashes; zero is the default.
	Hash auth.Params
	Now  func() time.Time // nil is time.Now
	Log  *slog.Logger     // nil logs nothing
}

// Data are the opened data of one machine. Close them.
type Data struct {
	Ports *api.Ports
	Table *sqlite.DB
	Disk  *disk.Store
	dir   string
}

// Open opens the data in a folder, which it makes if it is missing. A link key
// that has gone is made anew, and the log warned: the links sent before are dead.
func Open(dir string, settings api.Settings, o Options) (*Data, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Hash == (auth.Params{}) {
		o.Hash = auth.DefaultParams()
	}
	hasher, err := auth.NewHasher(o.Hash, rand.Reader, o.Now)
	if err != nil {
		return nil, err
	}
	d, err := openStores(dir, o.Existing, o.NoSync)
	if err != nil {
		return nil, err
	}
	key, made, err := linkKey(d.dir)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if made {
		o.Log.Warn("the link key was missing beside existing data and is a new one now: all links that were sent before are dead; "+
			"to have them back, stop Ferry and put the old file in its place", "file", filepath.Join(d.dir, keyName))
	}
	d.Ports = &api.Ports{
		Ports: auth.Ports{Table: d.Table, Key: key, Hasher: hasher, Random: rand.Reader, Now: o.Now},
		Blobs: d.Disk, Parts: d.Disk, Log: o.Log, Notify: func() {}, Settings: settings,
	}
	return d, nil
}

// openStores opens the table and the files, which is all that a backup needs.
func openStores(dir string, existing, noSync bool) (*Data, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	if err := prepare(dir, existing); err != nil {
		return nil, err
	}
	db, err := sqlite.Open(filepath.Join(dir, tableName), sqlite.Options{NoSync: noSync})
	if err != nil {
		return nil, err
	}
	store, err := disk.Open(dir, disk.Options{NoSync: noSync, Small: db.Blobs()})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Data{Table: db, Disk: store, dir: dir}, nil
}

// Close ends the use of the data. What was answered is safe without it.
func (d *Data) Close() error { return d.Table.Close() }

// prepare makes the folder and, in one without a table, the link key: first the
// key, so that a table without one tells that it was lost.
func prepare(dir string, existing bool) error {
	info, err := os.Stat(filepath.Join(dir, tableName))
	if err == nil && info.Size() > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("opening the data directory: %w", err)
	}
	switch left, err := hasFiles(dir); {
	case err != nil:
		return fmt.Errorf("opening the data directory: %w", err)
	case left:
		return fmt.Errorf("%s: %w", dir, ErrNoTable)
	case info != nil: // the first start was killed
		return nil
	case existing:
		return fmt.Errorf("%s: %w", dir, ErrNoData)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	_, _, err = linkKey(dir)
	return err
}

// hasFiles reports whether files of users are stored.
func hasFiles(dir string) (found bool, err error) {
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		walked := fs.WalkDir(os.DirFS(dir), string(area), func(path string, _ fs.DirEntry, err error) error {
			if strings.Count(path, "/") == 2 { // AREA/USER/FILE
				found = true
				return fs.SkipAll
			}
			return err
		})
		if walked != nil && !errors.Is(walked, fs.ErrNotExist) {
			return false, walked
		}
	}
	return found, nil
}
