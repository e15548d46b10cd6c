// Package backup copies a data directory to another folder while the service runs, and
// restores the copy: all data, or the bytes of one file. Start reading with Make.
package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/local"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

// copiesAtOnce lets small objects share the waits for the disk.
const copiesAtOnce = 16

const (
	// keptName is the table of the last backup before damage was found. It stays until a
	// backup finds no damage: it may know what later tables have lost.
	keptName = local.TableName + ".kept"
	// newName is the table of a copy in progress.
	newName = local.TableName + ".new"
	// damagedName is a backup's folder for bytes that do not match their checksum.
	damagedName = "damaged"
	// earlierTable is how a damaged earlier table is reported.
	earlierTable = "the table of the earlier backup"
)

var (
	// ErrInside is returned for a copy inside the data or around it.
	ErrInside = errors.New("a copy cannot be inside the data, nor the data inside the copy")
	// ErrTaken is returned for a copy to a folder that has things other than Ferry's.
	ErrTaken = errors.New("the directory is not empty and has no table of Ferry; name another one")
)

// Copied says what Make or Restore did.
type Copied struct {
	Files   int      // records in the copy
	New     int      // files that were copied now; the others were there already
	Bytes   int64    // of the new ones
	Removed int      // files of an earlier backup that no longer exist
	Damaged []string // what the data has lost: "USER/ID NAME" of a file, or a sentence
}

// Progress reports how far Make or Restore is. Its functions are called from
// several goroutines.
type Progress struct {
	Expect func(n int64) // n more bytes must be copied
	Done   func(n int64) // n more bytes were copied
}

// Make copies all data to a folder, which local.Open can then open. The data may be in
// use meanwhile, by other processes too. The copy is a snapshot. A folder with an
// earlier backup gets what is new, and keeps the earlier one until the new one is
// complete. Any other folder must be empty. Unfinished upload sessions are not copied.
//
// Newly copied bytes and all small files are compared by CRC64NVME; of other files, the
// source and the copy must have the right length and, with verify, the right checksum. A
// bad copy is replaced. Bad bytes of the source go to a folder beside the copies. If
// anything is damaged or lost, nothing of the earlier backup is removed.
func Make(
	ctx context.Context,
	d *local.Data,
	to string,
	verify bool,
	p Progress,
) (Copied, error) {
	return (&copying{data: d, verify: verify, progress: p}).start(ctx, to)
}

func (c *copying) start(ctx context.Context, to string) (Copied, error) {
	to, err := filepath.Abs(to)
	if err != nil {
		return Copied{}, fmt.Errorf("backing up: %w", err)
	}
	c.dir = resolved(to)
	if from := resolved(c.data.Dir); within(from, c.dir) || within(c.dir, from) {
		return Copied{}, fmt.Errorf("%s: %w", to, ErrInside)
	}
	if err := c.admit(); err != nil {
		return Copied{}, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return Copied{}, fmt.Errorf("making the directory: %w", err)
	}
	err = c.run(ctx)
	slices.Sort(c.copied.Damaged)
	c.copied.Damaged = slices.Compact(c.copied.Damaged)
	return c.copied, err
}

// resolved follows the symbolic links in as much of a path as exists.
func resolved(path string) string {
	to, err := filepath.EvalSymlinks(path)
	if folder := filepath.Dir(path); err != nil && folder != path {
		return filepath.Join(resolved(folder), filepath.Base(path))
	}
	return to
}

// admit refuses a folder in which a copy could replace or remove what isn't Ferry's. The table is
// the first thing that a copy writes, so a folder with an interrupted copy has the beginning of a
// table. A restore may also go to data that has lost its table: a restore removes nothing, and the
// link key shows that the data is Ferry's.
func (c *copying) admit() error {
	entries, err := os.ReadDir(c.dir)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "lost+found"
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking at the directory: %w", err)
	case len(entries) == 0:
		return nil
	}
	ours := c.restores && !missing(filepath.Join(c.dir, local.KeyName))
	for _, name := range []string{local.TableName, keptName, newName} {
		ours = ours || sqlite.Marked(filepath.Join(c.dir, name), name == newName)
	}
	if !ours {
		return fmt.Errorf("%s: %w", c.dir, ErrTaken)
	}
	return onlyPlain(c.dir)
}

// within reports whether a path is a folder or inside it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// copying is one backup in progress. Small files are copied with the table.
type copying struct {
	data     *local.Data // as it is now
	dir      string
	to       *disk.Store // of large files
	snapshot *sqlite.DB  // the copied table, with the small files
	earlier  *disk.Store // the same folder as to, with the small files of an earlier backup
	opened   []io.Closer
	verify   bool
	restores bool // into a folder whose files may be newer than the backup; they stay
	progress Progress

	mu     sync.Mutex
	copied Copied
	purged []table.Key  // records whose files were removed for good meanwhile
	stale  []files.File // bytes of an earlier backup that no record names
}

// run copies the table, and then the bytes that it names.
func (c *copying) run(ctx context.Context) error {
	now := filepath.Join(c.dir, local.TableName)
	aside, kept := filepath.Join(c.dir, newName), filepath.Join(c.dir, keptName)
	if err := c.copyTo(ctx, aside); err != nil {
		if missing(now) { // the next run must recognize the folder
			return err
		}
		return errors.Join(err, removeTable(aside))
	}
	if err := copySecrets(c.data.Dir, c.dir); err != nil {
		return err
	}
	// From here on the folder holds this backup. The log of an earlier table would be taken
	// for changes to this one.
	err := removeLogs(now)
	if len(c.copied.Damaged) > 0 && missing(kept) && os.Link(now, kept) != nil {
		_ = os.Rename(now, kept) // for file systems without links; there may be no earlier table
	}
	if err == nil {
		err = errors.Join(os.Rename(aside, now), syncFolder(c.dir))
	}
	if err == nil && len(c.copied.Damaged) == 0 {
		err = c.tidy(ctx)
	}
	return fault.Wrap(err, "finishing the backup")
}

// copySecrets copies the link key, without which links would be dead, and the
// secret of webhooks, if there is one.
func copySecrets(from, to string) error {
	for _, name := range []string{local.KeyName, local.SecretName} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if name == local.SecretName && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = disk.WritePrivate(filepath.Join(to, name), bytes.NewReader(text), os.Rename)
		}
		if err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return nil
}

// tidy removes what a backup without damage no longer needs. Folders that were in the way
// stay: nobody knows what they are.
func (c *copying) tidy(ctx context.Context) error {
	for _, f := range c.stale {
		if c.restores {
			break
		}
		if err := c.to.Delete(ctx, f.Area, f.Blob); err != nil {
			return err
		}
		c.copied.Removed++
	}
	err := removeTable(filepath.Join(c.dir, keptName))
	paths, _ := fs.Glob(os.DirFS(c.dir), damagedName+"/*/*/*") // only a bad pattern is an error
	for _, name := range paths {
		area := path.Dir(path.Dir(name))
		if _, _, ours := files.ParseBlobKey(strings.TrimPrefix(name, area+"/")); ours {
			err = errors.Join(err, c.drop(name))
		}
	}
	return err
}

// drop removes a file in a folder of the backup, and the folders that this leaves empty.
func (c *copying) drop(name string) error {
	err := os.Remove(filepath.Join(c.dir, name))
	for folder := path.Dir(name); err == nil && folder != "."; folder = path.Dir(folder) {
		_ = os.Remove(filepath.Join(c.dir, folder)) // unless something is left in it
	}
	return err
}

func (c *copying) copyTo(ctx context.Context, aside string) error {
	if err := removeLogs(aside); err != nil {
		return fmt.Errorf("removing an unfinished backup: %w", err)
	}
	if err := sqlite.CopyFile(ctx, filepath.Join(c.data.Dir, local.TableName), aside); err != nil {
		return err
	}
	snapshot, err := sqlite.Open(aside, sqlite.Options{})
	if err != nil {
		return err
	}
	target, err := disk.Open(c.dir, disk.Options{})
	if err != nil {
		return errors.Join(err, snapshot.Close())
	}
	c.to = target
	c.snapshot, c.opened = snapshot, []io.Closer{snapshot}
	if err = c.openEarlier(ctx); err == nil {
		err = c.copy(ctx)
	}
	if err == nil {
		err = c.findStale(ctx)
	}
	for i := 0; err == nil && i < len(c.purged); i++ {
		err = snapshot.Write(ctx, table.Delete(c.purged[i]))
	}
	for _, db := range c.opened {
		err = errors.Join(err, db.Close())
	}
	return err
}

// openEarlier opens an earlier backup for comparison, before its table is replaced. It reports
// users that the earlier table knows more about. A damaged table counts as missing.
func (c *copying) openEarlier(ctx context.Context) error {
	c.earlier = c.to
	for _, name := range []string{keptName, local.TableName} {
		path := filepath.Join(c.dir, name)
		if missing(path) {
			continue
		}
		db, err := local.OpenTable(path, sqlite.Options{})
		if err == nil {
			c.opened = append(c.opened, db)
			err = users.KnowsLess(ctx, db, c.snapshot, c.damaged)
		}
		if err == nil {
			c.earlier, err = disk.Open(c.dir, disk.Options{Small: db.Blobs()})
		}
		if damaged := errors.Is(err, sqlite.ErrDamaged); damaged && name == local.TableName {
			c.damaged(earlierTable)
		} else if err != nil && !damaged {
			return err
		}
	}
	return nil
}

// damaged records what the data has lost.
func (c *copying) damaged(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied.Damaged = append(c.copied.Damaged, what)
}

// copy copies the files that the table names and the backup lacks, and reports unreadable
// items.
func (c *copying) copy(ctx context.Context) error {
	var expected int64
	err := eachFile(ctx, c.snapshot, func(table.Key) {}, func(f files.File) {
		if there, _ := has(ctx, c.earlier, f, f, true, nil); c.verify || !there {
			expected += f.Length
		}
	})
	if err != nil {
		return err
	}
	c.progress.Expect(expected)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(copiesAtOnce)
	unreadable := func(key table.Key) {
		c.damaged(fmt.Sprintf("the item %s cannot be read", key))
	}
	err = eachFile(inner, c.snapshot, unreadable, func(f files.File) {
		g.Go(func() error { return c.file(inner, f) })
	})
	if failed := g.Wait(); failed != nil {
		return failed
	}
	return err
}

// eachFile yields the files of both areas until the context ends. unreadable gets the keys of
// damaged records, and of all items that are not JSON.
func eachFile(
	ctx context.Context,
	t table.Table,
	unreadable func(table.Key),
	yield func(files.File),
) error {
	return t.Scan(ctx, func(item table.Item) error {
		area, _, _ := strings.Cut(item.Key.PK, "#")
		record := blob.Area(area) == blob.Files || blob.Area(area) == blob.Backup
		f, err := files.DecodeFile(item)
		switch {
		case record && err == nil:
			yield(f)
		case record || !json.Valid(item.Raw):
			unreadable(item.Key)
		}
		return ctx.Err()
	})
}

// findStale finds objects of an earlier backup that no record of this one names. If anything is
// damaged, those in the earlier table are written to files, because that table will be replaced.
// They were good then, so the data's present bytes under their keys must not hide them.
func (c *copying) findStale(ctx context.Context) error {
	for o, err := range files.Objects(ctx, c.earlier) {
		if err == nil && o.Owner == "" { // no key of Ferry's
			continue
		}
		var f files.File
		if err == nil {
			err = c.snapshot.Get(ctx, files.Key(o.Area, o.Owner, o.ID), &f)
			err = fault.Wrap(
				err,
				"comparing what is in the backup",
				table.ErrNotFound,
				table.ErrUnreadable,
			)
		}
		if err == nil && f.Blob != o.Blob {
			c.stale = append(c.stale, o)
			if len(c.copied.Damaged) > 0 {
				err = c.keep(ctx, o)
				if err == nil {
					err = c.snapshot.Blobs().Delete(ctx, o.Area, o.Blob)
				}
			}
		}
		if errors.Is(err, sqlite.ErrDamaged) { // not in the copied table, which is sound
			c.damaged(earlierTable)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func removeTable(path string) error { return errors.Join(removeLogs(path), remove(path)) }

func removeLogs(path string) error {
	return errors.Join(remove(path+"-wal"), remove(path+"-shm"))
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
