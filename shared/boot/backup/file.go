package backup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/fault"
	"ferry/shared/files"
)

var (
	errPurged = errors.New("the file was removed meanwhile")
	errBad    = errors.New("the bytes are damaged")
)

// file brings the copy of one file up to date, and counts it.
func (c *copying) file(ctx context.Context, f files.File) error {
	there, _ := has(ctx, c.earlier, f, f, c.sizeOnly(f), nil)
	good, err := c.inTable(ctx, f)
	if err == nil && !good {
		err = c.find(ctx, f, func(at files.File) error {
			return c.copyLarge(ctx, f, at, there)
		})
	} else if good && !there {
		c.progress.Done(f.Length)
	}
	if there && !good { // perhaps only in the earlier table
		err = cmp.Or(c.keep(ctx, f), err)
	}
	purged, lost := errors.Is(err, errPurged), errors.Is(err, blob.ErrNotFound) ||
		errors.Is(err, errBad)
	if lost {
		c.damaged(name(f))
	} else if err != nil && !purged {
		return fmt.Errorf("copying %s: %w", name(f), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if purged && !there {
		c.purged = append(c.purged, files.Key(f.Area, f.Owner, f.ID))
		return nil
	}
	if c.copied.Files++; err == nil && !there {
		c.copied.New++
		c.copied.Bytes += f.Length
	}
	return nil
}

func name(f files.File) string { return fmt.Sprintf("%s/%d %s", f.Owner, f.ID, f.Name) }

// path returns where the bytes of a file are in the backup, or in a folder of it.
func (c *copying) path(f files.File, folder string) string {
	return filepath.Join(c.dir, folder, string(f.Area), filepath.FromSlash(f.Blob))
}

// inTable reports whether the copied table has the bytes of a file, perhaps under their key
// from before a move. It removes bad bytes, so that they hide no good file.
func (c *copying) inTable(ctx context.Context, f files.File) (bool, error) {
	err := f.Find(func(at files.File) error {
		content, err := c.snapshot.Blobs().Read(ctx, at.Area, at.Blob)
		if err != nil ||
			f.Fits(blob.Written{Size: int64(len(content)), CRC64NVME: crc64nvme.Checksum(content)}) {
			return err
		}
		return cmp.Or(c.snapshot.Blobs().Delete(ctx, at.Area, at.Blob), blob.ErrNotFound)
	}, nil)
	return err == nil, fault.Wrap(err, "reading bytes in the copied table", blob.ErrNotFound)
}

// sizeOnly reports whether comparing the size of a copied file is enough. Files that an
// earlier run found damaged are read again.
func (c *copying) sizeOnly(f files.File) bool {
	return !c.verify && f.Length > disk.MaxSmall && missing(c.path(f, damagedName))
}

// has reports whether a store has the bytes of f at a place or, with sizeOnly, as many bytes.
// read gets the number of bytes compared, and may be nil.
func has(
	ctx context.Context, s *disk.Store, at, f files.File, sizeOnly bool, read func(int64),
) (bool, error) {
	if sizeOnly {
		read = nil
	}
	written, err := blob.Measure(ctx, s, at.Area, at.Blob, sizeOnly, read)
	return err == nil && (sizeOnly && written.Size == f.Length || f.Fits(written)), err
}

// copyLarge replaces the copy of a file with the data's bytes, unless both are good. Bytes that
// do not match their checksum go to the damaged folder instead, and the error is errBad.
func (c *copying) copyLarge(ctx context.Context, f, from files.File, there bool) error {
	if there {
		good, err := has(ctx, c.data.Disk, from, f, c.sizeOnly(f), c.progress.Done)
		if err != nil || good {
			return c.unreadable(ctx, err)
		}
	}
	r, err := c.data.Disk.Open(ctx, from.Area, from.Blob)
	if err != nil {
		return c.unreadable(ctx, err)
	}
	defer r.Close()
	body := blob.NewBody(ctx, io.TeeReader(r, counter(c.progress.Done)), -1)
	err = c.write(body, func(aside string) error {
		if !f.Fits(body.Written()) {
			return cmp.Or(c.place(aside, c.path(f, damagedName)), errBad)
		}
		return c.place(aside, c.path(f, ""))
	})
	if body.Err() != nil {
		return c.unreadable(ctx, body.Err())
	}
	return err
}

// unreadable turns a read error of the disk into errBad: one bad file must not stop the others.
func (c *copying) unreadable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, blob.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w: %w", errBad, err)
}

// write writes a durable file, and then calls place with its path.
func (c *copying) write(content io.Reader, place func(aside string) error) error {
	return disk.WritePrivate(filepath.Join(
		c.dir,
		"tmp",
		"copy",
	), content, func(aside, _ string) error {
		return place(aside)
	})
}

// place renames a written file to path, over any file there, and makes that durable. A folder
// in the way goes to the damaged folder.
func (c *copying) place(aside, path string) error {
	folder, away := filepath.Dir(path), filepath.Join(
		c.dir,
		damagedName,
		"folders",
		filepath.Base(path)+"-"+rand.Text(),
	)
	err := os.MkdirAll(folder, 0o700)
	if info, stat := os.Lstat(path); stat == nil && info.IsDir() {
		err = os.MkdirAll(filepath.Dir(away), 0o700)
		if err == nil {
			err = os.Rename(path, away)
		}
	}
	if err == nil {
		err = errors.Join(
			os.Rename(aside, path),
			syncFolder(folder),
			syncFolder(filepath.Dir(folder)),
		)
	}
	return err
}

// counter is a writer that passes on how much is written to it.
type counter func(n int64)

func (c counter) Write(b []byte) (int, error) {
	c(int64(len(b)))
	return len(b), nil
}

// keep keeps the bytes of a file in an earlier backup. Bytes in its table are written to a file,
// because that table will be replaced and the data may have lost them since.
func (c *copying) keep(ctx context.Context, f files.File) error {
	path := c.path(f, "")
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		return nil
	}
	r, err := c.earlier.Open(ctx, f.Area, f.Blob)
	if err != nil {
		return err
	}
	defer r.Close()
	return c.write(r, func(aside string) error { return c.place(aside, path) })
}

// find is Find for a file whose record was copied a while ago. ErrNotFound means damage.
func (c *copying) find(ctx context.Context, f files.File, do func(at files.File) error) error {
	return f.Find(do, func() (files.File, error) {
		now, err := recorded(ctx, c.data.Table, f.Owner, f.ID)
		unreadable := now.ID == 0 // then it counts as unchanged
		switch {
		case err != nil:
			return now, err
		case now.Area == "" || !unreadable && now.CRC64 != f.CRC64:
			return now, errPurged
		case unreadable:
			return now, blob.ErrNotFound
		}
		return now, nil
	})
}
