// Package local opens the ports on one machine: a table in a SQLite file,
// files in folders, the link key in a file that only its owner can read, and
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
	"ferry/shared/blob/disk"
	"ferry/shared/endpoint"
	"ferry/shared/links"
	"ferry/shared/table/sqlite"
)

// Options say how the data are opened.
type Options struct {
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
}

// Open opens the data in a folder, which it makes if it is missing.
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
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	key, err := linkKey(filepath.Join(dir, "link.key"), rand.Reader)
	if err != nil {
		return nil, err
	}
	hasher, err := auth.NewHasher(o.Hash, rand.Reader, o.Now)
	if err != nil {
		return nil, err
	}
	store, err := disk.Open(dir, disk.Options{NoSync: o.NoSync})
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(filepath.Join(dir, "table.sqlite"), sqlite.Options{NoSync: o.NoSync})
	if err != nil {
		return nil, err
	}
	return &Data{
		Table: db,
		Disk:  store,
		Ports: &endpoint.Ports{
			Table: db, Blobs: store, Key: key, Hasher: hasher,
			Random: rand.Reader, Now: o.Now, Log: o.Log, Notify: func() {}, Settings: settings,
		},
	}, nil
}

// Close ends the use of the data. What was answered is safe without it.
func (d *Data) Close() error { return d.Table.Close() }

// linkKey reads the key's file, or makes it. Two processes that start at once
// agree: the file is linked into place, and only one link is made.
func linkKey(path string, random io.Reader) (links.Key, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path, random); err != nil {
			return links.Key{}, fmt.Errorf("making the link key: %w", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return links.Key{}, fmt.Errorf("reading the link key: %w", err)
	}
	key, err := links.ParseKey(string(text))
	if err != nil {
		return links.Key{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func makeKey(path string, random io.Reader) error {
	text, err := links.NewKey(random)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".link.key-*") // mode 0600
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
