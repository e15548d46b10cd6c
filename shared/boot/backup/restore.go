package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

var (
	// ErrHasData is returned by Restore for a folder that has data already.
	ErrHasData = errors.New("there is Ferry data here already")
	// ErrForeign is returned for a backup with entries that a backup never has.
	ErrForeign = errors.New("a backup can have only plain files and directories")
	// ErrNoFile is returned by RestoreFile if there is nothing to restore, or nothing to
	// restore it from.
	ErrNoFile = errors.New("no such file")
)

// Restore copies a backup to a folder without data.
func Restore(ctx context.Context, from, to string, p Progress) (Copied, error) {
	if _, err := os.Stat(filepath.Join(to, local.TableName)); !errors.Is(err, fs.ErrNotExist) {
		return Copied{}, fmt.Errorf("%s: %w", to, cmp.Or(err, ErrHasData))
	}
	d, err := openBackup(from)
	if err != nil {
		return Copied{}, err
	}
	copied, err := (&copying{data: d, progress: p, restores: true}).start(ctx, to)
	return copied, errors.Join(err, d.Close())
}

// onlyPlain checks that nothing in a backup leads to other files, or blocks this process.
func onlyPlain(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // it is not copied either
			return nil
		case err == nil && !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s: %w", path, ErrForeign)
		}
		return err
	})
}

// openBackup opens a backup. It may come from elsewhere, so nothing in it may lead to other
// files, block this process, or run by itself.
func openBackup(dir string) (*local.Data, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = onlyPlain(root)
	}
	if path := filepath.Join(root, local.TableName); err == nil && !missing(path) {
		err = sqlite.CheckSchema(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return local.Open(dir, local.Options{Existing: true})
}

// RestoreFile replaces the bytes of a file with those from a backup, even while the service
// runs: they get a new key, and record and links switch to it at once. If the record cannot
// be read, it comes from the backup too. A missing record stays missing: the user may have
// removed the file.
func RestoreFile(
	ctx context.Context,
	d *local.Data,
	from, owner string,
	id int64,
) (f files.File, err error) {
	b, err := openBackup(from)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	f, err = recorded(ctx, d.Table, owner, id)
	if err == nil && f.Area == "" {
		err = fmt.Errorf("%s/%d: %w: there is no record of it; its user may have removed it",
			owner, id, ErrNoFile)
	}
	if err == nil && f.ID == 0 {
		f, err = earlierRecord(ctx, b, f.Area, owner, id)
	}
	if err != nil {
		return f, err
	}
	f, err = service.New(
		d.Ports, service.Settings{},
	).Files().Rekey(ctx, f, nil, func(now files.File) error {
		r, err := bytesOf(ctx, b, now)
		if err == nil {
			_, err = d.Disk.Create(ctx, now.Area, now.Blob, r, now.Length)
			err = errors.Join(err, r.Close())
		}
		return err
	})
	if errors.Is(err, table.ErrCondition) {
		err = fmt.Errorf("%s/%d was changed at the same moment; try again: %w",
			owner, id, table.ErrBusy)
	}
	return f, err
}

// recorded returns the record of a file, or only its area if the record cannot be read.
// Without a record there is no area.
func recorded(
	ctx context.Context,
	t table.Table,
	owner string,
	id int64,
) (f files.File, err error) {
	for _, area := range []blob.Area{blob.Files, blob.Backup, blob.Files} { // it may move meanwhile
		items, err := t.GetMany(ctx, files.Key(area, owner, id))
		if err != nil {
			return f, fmt.Errorf("reading the record of a file: %w", err)
		}
		if now, damaged := files.DecodeFile(items[0]); damaged == nil {
			return now, nil
		}
		if items[0].Found() {
			f.Area = area
		}
	}
	return f, nil
}

// earlierRecord returns a backup's record of a file, changed to the area where it is now.
func earlierRecord(
	ctx context.Context,
	d *local.Data,
	now blob.Area,
	owner string,
	id int64,
) (f files.File, err error) {
	f, err = recorded(ctx, d.Table, owner, id)
	kept := filepath.Join(d.Dir, keptName)
	if err == nil && f.ID == 0 && sqlite.CheckSchema(kept) == nil {
		var t *sqlite.DB
		if t, err = sqlite.Open(kept, sqlite.Options{}); err == nil {
			f, err = recorded(ctx, t, owner, id)
			err = errors.Join(err, t.Close())
		}
	}
	if err != nil {
		return f, err
	}
	if f.ID == 0 {
		return f, fmt.Errorf(
			"%s/%d: %w: its record cannot be read, and is not in the backup either",
			owner,
			id,
			ErrNoFile,
		)
	}
	if f.Area != now { // it stays there until its user removes it
		f.Area, f.Expires = now, 0
	}
	return f, nil
}

// bytesOf opens the bytes that a backup has of a file, under whatever key.
func bytesOf(ctx context.Context, d *local.Data, f files.File) (io.ReadCloser, error) {
	for o, err := range files.Objects(ctx, d.Disk) {
		if err != nil {
			return nil, err
		}
		if o.Owner != f.Owner || o.ID != f.ID || o.Length != f.Length {
			continue
		}
		if good, _ := has(ctx, d.Disk, o, f, false, nil); good {
			return d.Disk.Open(ctx, o.Area, o.Blob)
		}
	}
	return nil, cmp.Or(
		ctx.Err(),
		fmt.Errorf("%s: %w with the right bytes in the backup", name(f), ErrNoFile),
	)
}
