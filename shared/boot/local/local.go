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

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
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
	Hash users.Params
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
	p, err := NewPorts(o)
	if err != nil {
		return nil, err
	}
	f := NewFolder(dir, o)
	d := &Data{Ports: p, Dir: f.dir}
	if d.Table, err = f.Table(); err != nil {
		return nil, err
	}
	d.Ports.Table = d.Table
	if d.Disk, err = f.Disk(d.Table); err == nil {
		UseDisk(&d.Ports, d.Disk)
		d.Ports.Key, err = f.Key()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// NewPorts returns the ports of a program that need no store.
func NewPorts(o Options) (service.Ports, error) {
	o = o.complete()
	hasher, err := users.NewHasher(o.Hash, rand.Reader, o.Now)
	return service.Ports{
		Hasher: hasher,
		Tries:  limit.NewTries(),
		Random: rand.Reader,
		Now:    o.Now,
		Log:    o.Log,
	}, err
}

// UseDisk lets ports keep the bytes of files on a disk.
func UseDisk(p *service.Ports, d *disk.Store) {
	p.Blobs, p.Parts = d, d
	p.Known, p.Medium = d, d
	p.Free = d.Room
}

// complete fills in the defaults.
func (o Options) complete() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Hash = cmp.Or(o.Hash, users.DefaultParams())
	return o
}

// Folder is the folder of a machine's data. Its methods open each store by itself.
type Folder struct {
	dir      string // absolute
	invalid  error
	options  Options
	hasTable bool
}

// NewFolder returns a Folder. It opens nothing.
func NewFolder(dir string, o Options) *Folder {
	dir, err := filepath.Abs(dir)
	return &Folder{
		dir:     dir,
		invalid: fault.Wrap(err, "opening the data directory"),
		options: o.complete(),
	}
}

// Table opens the table. If there is no data yet, it makes the folder, the table and a key.
func (f *Folder) Table() (*sqlite.DB, error) {
	if f.invalid != nil {
		return nil, f.invalid
	}
	if err := prepare(f.dir, f.options); err != nil {
		return nil, err
	}
	f.hasTable = true
	reserve, err := f.reserve()
	if err != nil {
		return nil, err
	}
	return OpenTable(filepath.Join(f.dir, TableName), sqlite.Options{
		NoSync: f.options.NoSync,
		Log:    reserve / 4,
	})
}

// Disk opens the files. Small ones are kept in a table in the same folder, if there is one.
func (f *Folder) Disk(beside *sqlite.DB) (*disk.Store, error) {
	if f.invalid != nil {
		return nil, f.invalid
	}
	reserve, err := f.reserve()
	if err != nil {
		return nil, err
	}
	o := disk.Options{NoSync: f.options.NoSync, Reserve: reserve, Now: f.options.Now}
	if beside != nil {
		o.Small = beside.Blobs()
		o.Failed = beside.Failed()
	}
	return disk.Open(f.dir, o)
}

// reserve returns how many bytes of the disk uploads leave free.
func (f *Folder) reserve() (int64, error) {
	if f.options.Reserve <= 0 {
		return 0, nil
	}
	_, total, err := disk.Space(f.dir)
	return min(f.options.Reserve, total/10), err
}

// Key opens the link key.
func (f *Folder) Key() (keys.LinkKey, error) {
	key, made, err := linkKey(f.dir, f.options)
	if made && f.hasTable {
		f.options.Log.Warn("the link key was missing beside existing data and was replaced by a new one: "+
			"all links that were sent before are dead; to bring them back, stop Ferry and put the old file in its place", "file", filepath.Join(
			f.dir,
			KeyName,
		))
	}
	return key, err
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
