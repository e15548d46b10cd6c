package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/minio/crc64nvme"
	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

const (
	// copiesAtOnce lets small objects share the waits for the disk.
	copiesAtOnce = 16
	// copyTries bounds the search for a file that keeps moving between the areas.
	copyTries = 10
)

var (
	// ErrHasData is returned by Restore for a folder that has data already.
	ErrHasData = errors.New("there is Ferry data here already")
	// ErrInside is returned for a copy inside the data or around it.
	ErrInside = errors.New("a copy cannot be inside the data, nor the data inside it")
)

// Copied says what a Backup or Restore did.
type Copied struct {
	Files   int      // in the copy
	New     int      // of these, copied now; the others were there
	Bytes   int64    // of the new ones
	Removed int      // files of an earlier backup that no longer exist
	Damaged []string // "USER/ID NAME" of files whose bytes are missing or have another checksum
}

// Progress reports how far a Backup or Restore is. Its functions are called from
// several goroutines.
type Progress struct {
	Expect func(n int64) // n more bytes must be copied
	Done   func(n int64) // n more bytes were copied
}

// Backup copies all data to a folder, which Open can then open. The data may be in
// use meanwhile, by other processes too. The copy shows one moment: each record in
// it has its bytes, compared by CRC64NVME. A folder with an earlier backup gets what
// is new, and keeps the earlier one until the new one is complete. Unfinished upload
// sessions are not copied.
func (d *Data) Backup(ctx context.Context, to string, p Progress) (Copied, error) {
	to, err := filepath.Abs(to)
	if err != nil {
		return Copied{}, fmt.Errorf("backing up: %w", err)
	}
	if within(d.dir, to) || within(to, d.dir) {
		return Copied{}, fmt.Errorf("%s: %w", to, ErrInside)
	}
	target, err := disk.Open(to, disk.Options{})
	if err != nil {
		return Copied{}, err
	}
	c := &copying{from: d.Disk, live: d.Table, to: target, progress: p}
	err = c.run(ctx, d.dir, to)
	return c.copied, err
}

// within reports whether a path is a folder or inside it, ignoring symbolic links.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Restore copies a backup to a folder without data.
func Restore(ctx context.Context, from, to string, p Progress) (Copied, error) {
	if _, err := os.Stat(filepath.Join(to, tableName)); !errors.Is(err, fs.ErrNotExist) {
		return Copied{}, fmt.Errorf("%s: %w", to, cmp.Or(err, ErrHasData))
	}
	d, err := openStores(from, Options{Existing: true})
	if err != nil {
		return Copied{}, err
	}
	copied, err := d.Backup(ctx, to, p)
	return copied, errors.Join(err, d.Close())
}

// copying is one backup in progress. Small files are copied with the table.
type copying struct {
	from     *disk.Store
	to       *disk.Store   // of large files
	live     table.Table   // of the data, as it is now
	small    *sqlite.Blobs // of the copy
	earlier  *disk.Store   // the same folder as to, with the small files of an earlier backup
	progress Progress

	mu     sync.Mutex
	copied Copied
	purged []table.Key  // records whose files were removed for good meanwhile
	stale  []files.File // with area and key: bytes of an earlier backup that no record names
}

// run copies the table, and then the bytes that it names.
func (c *copying) run(ctx context.Context, from, to string) error {
	aside := filepath.Join(to, tableName+".new")
	if err := c.copyTo(ctx, filepath.Join(from, tableName), aside); err != nil {
		return errors.Join(err, removeTable(aside))
	}
	if err := copySecrets(from, to); err != nil {
		return err
	}
	// From here on the folder holds this backup. The log of an earlier table would be taken
	// for changes to this one.
	err := removeLogs(filepath.Join(to, tableName))
	if err == nil {
		err = os.Rename(aside, filepath.Join(to, tableName))
	}
	if err == nil {
		err = syncFolder(to)
	}
	if err != nil {
		return fmt.Errorf("finishing the backup: %w", err)
	}
	for _, f := range c.stale {
		if err := c.to.Delete(ctx, f.Area, f.Blob); err != nil {
			return fmt.Errorf("removing what an earlier backup left: %w", err)
		}
		c.copied.Removed++
	}
	return nil
}

func (c *copying) copyTo(ctx context.Context, from, aside string) error {
	if err := removeTable(aside); err != nil {
		return fmt.Errorf("removing an unfinished backup: %w", err)
	}
	if err := sqlite.CopyFile(ctx, from, aside); err != nil {
		return err
	}
	snapshot, err := sqlite.Open(aside, sqlite.Options{})
	if err != nil {
		return err
	}
	c.small = snapshot.Blobs()
	closeEarlier, err := c.openEarlier(filepath.Dir(aside))
	if err == nil {
		err = c.copy(ctx, snapshot)
	}
	if err == nil {
		err = c.findStale(ctx, snapshot)
	}
	err = errors.Join(err, closeEarlier())
	for _, key := range c.purged {
		err = cmp.Or(err, snapshot.Write(ctx, table.Delete(key)))
	}
	return errors.Join(err, snapshot.Close())
}

// openEarlier opens an earlier backup to compare with it, before its table is
// replaced, and returns what closes it. A damaged one counts as missing.
func (c *copying) openEarlier(dir string) (end func() error, err error) {
	end, c.earlier = func() error { return nil }, c.to
	path := filepath.Join(dir, tableName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return end, nil
	}
	db, err := sqlite.Open(path, sqlite.Options{})
	if errors.Is(err, sqlite.ErrDamaged) {
		return end, nil
	}
	if err != nil {
		return end, err
	}
	c.earlier, err = disk.Open(dir, disk.Options{Small: db.Blobs()})
	return db.Close, err
}

// copy copies the files that a table names and that are not there yet.
func (c *copying) copy(ctx context.Context, snapshot *sqlite.DB) error {
	var expected int64
	err := eachFile(ctx, snapshot, func(f files.File) {
		if !c.there(ctx, f) {
			expected += f.Length
		}
	})
	if err != nil {
		return err
	}
	c.progress.Expect(expected)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(copiesAtOnce)
	err = eachFile(inner, snapshot, func(f files.File) {
		g.Go(func() error { return c.file(inner, f) })
	})
	return cmp.Or(g.Wait(), err)
}

// eachFile yields the files of both areas until the context ends.
func eachFile(ctx context.Context, t table.Table, yield func(files.File)) error {
	return t.Scan(ctx, func(item table.Item) error {
		area, _, _ := strings.Cut(item.Key.PK, "#")
		if blob.Area(area) == blob.Files || blob.Area(area) == blob.Backup {
			var f files.File
			if err := item.Decode(&f); err != nil {
				return fmt.Errorf("reading the record of a file: %w", err)
			}
			yield(f)
		}
		return ctx.Err()
	})
}

// file copies the bytes of one file, unless they are there, and counts it.
func (c *copying) file(ctx context.Context, f files.File) error {
	there, kept := c.there(ctx, f), false
	content, err := c.readSmall(ctx, f)
	written := blob.Written{Size: int64(len(content)), CRC64NVME: crc64nvme.Checksum(content)}
	if err == nil && !there {
		c.progress.Done(written.Size)
	}
	if errors.Is(err, blob.ErrNotFound) && there {
		err = c.keep(ctx, f)
		kept = err == nil
	}
	if errors.Is(err, blob.ErrNotFound) {
		there = false
		written, err = c.copyLarge(ctx, f)
	}
	gone := errors.Is(err, blob.ErrNotFound)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, errPurged):
		c.purged = append(c.purged, files.Key(f.Area, f.Owner, f.ID))
		return nil
	case err != nil && !gone:
		return fmt.Errorf("copying %s: %w", name(f), err)
	}
	c.copied.Files++
	if gone || !kept && (written.Size != f.Length || fmt.Sprintf("%016x", written.CRC64NVME) != f.CRC64) {
		c.copied.Damaged = append(c.copied.Damaged, name(f))
	}
	if !there && !gone {
		c.copied.New++
		c.copied.Bytes += written.Size
	}
	return nil
}

// readSmall returns the bytes of a file that the copied table has, perhaps where they were
// before a move.
func (c *copying) readSmall(ctx context.Context, f files.File) (content []byte, err error) {
	for _, at := range f.Places() {
		if content, err = c.small.Read(ctx, at.Area, at.Blob); !errors.Is(err, blob.ErrNotFound) {
			break
		}
	}
	return content, err
}

func (c *copying) copyLarge(ctx context.Context, f files.File) (written blob.Written, err error) {
	r, err := c.find(ctx, f)
	if err != nil {
		return written, err
	}
	defer r.Close()
	written, err = c.to.Create(ctx, f.Area, f.Blob, io.TeeReader(r, counter(c.progress.Done)), -1)
	if errors.Is(err, blob.ErrExists) { // an earlier backup has it with another length: damaged
		return written, nil
	}
	return written, err
}

// keep keeps the bytes that an earlier backup has of a file. If they are in its table,
// which will be replaced, they become a file: the data may have lost them since.
func (c *copying) keep(ctx context.Context, f files.File) error {
	if r, err := c.to.Open(ctx, f.Area, f.Blob); err == nil {
		return r.Close()
	}
	r, err := c.earlier.Open(ctx, f.Area, f.Blob)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = c.to.Create(ctx, f.Area, f.Blob, r, f.Length)
	return err
}

var errPurged = errors.New("the file was removed meanwhile")

// find opens the bytes of a file, even if it was moved to the other area after its
// record was copied, which gives them another key. ErrNotFound means damage.
func (c *copying) find(ctx context.Context, f files.File) (io.ReadSeekCloser, error) {
	at := f
	for try := 0; ; try++ {
		for _, place := range at.Places() {
			r, err := c.from.Open(ctx, place.Area, place.Blob)
			if !errors.Is(err, blob.ErrNotFound) {
				return r, err
			}
		}
		now, there, err := c.now(ctx, f)
		switch {
		case err != nil:
			return nil, err
		case !there && try > 0: // try twice, as it may move while the areas are read
			return nil, errPurged
		case there && (now.Blob == at.Blob || try == copyTries):
			return nil, blob.ErrNotFound
		case there:
			at = now
		}
	}
}

// now returns the record that a file has now, in either area.
func (c *copying) now(ctx context.Context, f files.File) (now files.File, there bool, err error) {
	items, err := c.live.GetMany(ctx, files.Key(blob.Files, f.Owner, f.ID), files.Key(blob.Backup, f.Owner, f.ID))
	if err != nil {
		return now, false, err
	}
	for _, item := range items {
		if err := item.Decode(&now); err == nil && now.CRC64 == f.CRC64 {
			return now, true, nil
		}
	}
	return now, false, nil
}

func name(f files.File) string { return fmt.Sprintf("%s/%d %s", f.Owner, f.ID, f.Name) }

// there reports whether an earlier backup has the bytes, which never change.
func (c *copying) there(ctx context.Context, f files.File) bool {
	r, err := c.earlier.Open(ctx, f.Area, f.Blob)
	if err != nil {
		return false
	}
	defer r.Close()
	size, err := r.Seek(0, io.SeekEnd)
	return err == nil && size == f.Length
}

// counter is a writer that passes on how much is written to it.
type counter func(n int64)

func (c counter) Write(b []byte) (int, error) {
	c(int64(len(b)))
	return len(b), nil
}

// findStale finds objects of an earlier backup that no record of this one names.
func (c *copying) findStale(ctx context.Context, snapshot *sqlite.DB) error {
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		for after := ""; ; {
			page, err := c.earlier.List(ctx, area, after, table.MaxKeys)
			if err == nil {
				err = c.compare(ctx, snapshot, area, page)
			}
			if err != nil {
				return fmt.Errorf("looking for what an earlier backup left: %w", err)
			}
			if len(page) < table.MaxKeys {
				break
			}
			after = page[len(page)-1].Key
		}
	}
	return nil
}

func (c *copying) compare(ctx context.Context, snapshot *sqlite.DB, area blob.Area, page []blob.Object) error {
	keys := make([]table.Key, len(page))
	for i, o := range page {
		owner, id, _ := files.ParseBlobKey(o.Key) // a key of another form names no record
		keys[i] = files.Key(area, owner, id)
	}
	items, err := snapshot.GetMany(ctx, keys...)
	if err != nil {
		return err
	}
	for i, item := range items {
		var f files.File
		if err := item.Decode(&f); err != nil || f.Blob != page[i].Key {
			c.stale = append(c.stale, files.File{Area: area, Blob: page[i].Key})
		}
	}
	return nil
}

func removeTable(path string) error { return errors.Join(removeLogs(path), os.RemoveAll(path)) }

func removeLogs(path string) error {
	return errors.Join(os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm"))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
