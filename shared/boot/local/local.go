// Package local opens the ports on one machine: a table in a SQLite file,
// files in folders, small ones in the SQLite file, the link key in a file that only its owner can read, and
// an inbox in place of mail and text messages.
package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/endpoint"
	"ferry/shared/links"
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
	Ports *endpoint.Ports
	Table *sqlite.DB
	Disk  *disk.Store
	dir   string
}

// Open opens the data in a folder, which it makes if it is missing. A link key
// that has gone is made anew, and the log warned: the links sent before are dead.
func Open(dir string, settings endpoint.Settings, o Options) (*Data, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Hash == (auth.Params{}) {
		o.Hash = auth.DefaultParams()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	keyPath, tablePath := filepath.Join(dir, keyName), filepath.Join(dir, tableName)
	if err := prepare(dir, o.Existing); err != nil {
		return nil, err
	}
	hasher, err := auth.NewHasher(o.Hash, rand.Reader, o.Now)
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(tablePath, sqlite.Options{NoSync: o.NoSync})
	if err != nil {
		return nil, err
	}
	store, err := disk.Open(dir, disk.Options{NoSync: o.NoSync, Small: db.Blobs()})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	key, made, err := linkKey(keyPath, rand.Reader)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if made {
		o.Log.Warn("the link key was missing beside existing data and is a new one now: all links that were sent before are dead; "+
			"to have them back, stop Ferry and put the old file in its place", "file", keyPath)
	}
	return &Data{
		Table: db,
		Disk:  store,
		dir:   dir,
		Ports: &endpoint.Ports{
			Table: db, Blobs: store, Parts: store, Key: key, Hasher: hasher,
			Random: rand.Reader, Now: o.Now, Log: o.Log, Notify: func() {}, Settings: settings,
		},
	}, nil
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
	_, _, err = linkKey(filepath.Join(dir, keyName), rand.Reader)
	return err
}

// hasFiles reports whether files of users are stored.
func hasFiles(dir string) (bool, error) {
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		folder := filepath.Join(dir, string(area))
		owners, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		for _, o := range owners {
			if o.IsDir() {
				some, err := hasNames(filepath.Join(folder, o.Name()))
				if some || err != nil {
					return some, err
				}
			}
		}
	}
	return false, nil
}

func hasNames(dir string) (bool, error) {
	d, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	_, err = d.Readdirnames(1)
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

// linkKey reads the key's file, or makes it.
func linkKey(path string, random io.Reader) (key links.Key, made bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path, random); err != nil {
			return key, false, fmt.Errorf("making the link key: %w", err)
		}
		made = true
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return key, false, fmt.Errorf("reading the link key: %w", err)
	}
	if key, err = links.ParseKey(string(text)); err != nil {
		return key, false, fmt.Errorf("%s: %w: %w", path, ErrKey, err)
	}
	return key, made, nil
}

func makeKey(path string, random io.Reader) error {
	text, err := links.NewKey(random)
	if err != nil {
		return err
	}
	return makeFile(path, text)
}

// makeFile makes a file that only its owner can read, unless there is one. Two
// processes at once agree: the file is linked into place, and only one link is
// made.
func makeFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, text+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
