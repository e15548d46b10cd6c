package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ferry/shared/bundle"
	"ferry/shared/client"
	"ferry/shared/wire"
)

// surelyRead is the length from which a bundle takes so long that a file which cannot be read must be
// told before it is sent.
const surelyRead = 64 << 20

// tree is what goes into a bundle.
type tree struct {
	entries []bundle.Entry
	files   []member // of the entries, in their order; that of a folder is empty
	skipped func(path string)

	tops  map[string]string // the paths that a person named, by their first element in the bundle
	name  string            // of the first folder
	roots []*os.Root        // of the folders
}

// member is a file of a bundle.
type member struct {
	info fs.FileInfo
	stat func() (fs.FileInfo, error)
	open func() (*os.File, error)
}

// kept is what an interrupted upload of a bundle remembers of an entry.
type kept struct {
	Path       string `json:"path"`
	Length     int64  `json:"length,omitempty"`
	Modified   int64  `json:"modified,omitempty"` // Unix nanoseconds; 0 for folders
	Executable bool   `json:"executable,omitempty"`
}

// bundles reports whether the paths become one bundle.
func (c upCommand) bundles() bool { return !c.Each && (len(c.Paths) > 1 || isFolder(c.Paths[0])) }

// bundle uploads all paths as one bundle.
func (u *uploader) bundle(ctx context.Context) error {
	t := &tree{tops: map[string]string{}, skipped: func(path string) {
		u.meter.print(u.out.Err, "skipped %s, which is not a regular file", printable(path))
	}}
	defer t.close()
	u.meter.files.Store(1)
	forgetOldStates(time.Now())
	for _, path := range u.Paths {
		if err := t.take(path); err != nil {
			u.failed.add(path, err)
			u.results = []uploaded{{Path: path, Error: explain(err)}}
			return nil
		}
	}
	it := item{name: u.bundleName(t), tree: t}
	if it.path = it.name; len(u.Paths) == 1 {
		it.path = u.Paths[0]
	}
	u.results = []uploaded{{Path: it.path, Error: "not tried"}}
	u.one(ctx, 0, it)
	return nil
}

// bundleName returns the name of the bundle: the one that a person chose, or that of the first
// folder, or of the folder that all files were named in.
func (u *uploader) bundleName(t *tree) string {
	folder := filepath.Dir(u.Paths[0])
	elsewhere := func(path string) bool { return filepath.Dir(path) != folder }
	if folder == "." || slices.ContainsFunc(u.Paths, elsewhere) {
		folder = "files"
	}
	name := wire.CleanFileName(cmp.Or(u.Name, t.name, filepath.Base(folder)))
	if !strings.EqualFold(path.Ext(name), ".zip") {
		name = cmp.Or(name, "files") + ".zip"
	}
	return name
}

// take adds a file or folder that a person named.
func (t *tree) take(path string) error {
	info, err := os.Stat(path) // follows a link that was named
	if err != nil {
		return noInput(err)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	top := filepath.Base(whole) // also of . and ..
	if other, taken := t.tops[top]; taken {
		return usage("%s would have the same name in the bundle", printable(other))
	}
	t.tops[top] = path
	switch {
	case info.IsDir():
		t.name = cmp.Or(t.name, top)
		return t.folder(path, top)
	case !info.Mode().IsRegular():
		return usage("it is neither a file nor a folder")
	}
	stat := func() (fs.FileInfo, error) { return os.Stat(path) }
	return t.add(top, member{info, stat, func() (*os.File, error) { return os.Open(path) }})
}

// folder adds everything in a folder, and follows no links.
func (t *tree) folder(dir, top string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	t.roots = append(t.roots, root)
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return t.add(path.Join(top, name)+"/", member{info: info})
		case !info.Mode().IsRegular():
			t.skipped(filepath.Join(dir, name))
			return nil
		}
		stat := func() (fs.FileInfo, error) { return root.Lstat(name) }
		return t.add(path.Join(top, name), member{info, stat, func() (*os.File, error) { return root.Open(name) }})
	})
}

// add adds an entry. Of folders, only the empty ones need one.
func (t *tree) add(path string, m member) error {
	last := len(t.entries) - 1
	if last >= 0 && t.entries[last].IsFolder() && strings.HasPrefix(path, t.entries[last].Path) {
		t.entries, t.files = t.entries[:last], t.files[:last]
	}
	if len(t.entries) == bundle.MaxEntries {
		return usage("a bundle has at most 10,000 files and empty folders, and here are more; " +
			"make several bundles, or say --each")
	}
	e := bundle.Entry{Path: path, Modified: m.info.ModTime()}
	if !e.IsFolder() {
		e.Length, e.Executable = m.info.Size(), m.info.Mode()&0o100 != 0
	}
	t.entries, t.files = append(t.entries, e), append(t.files, m)
	return nil
}

// open opens the file of an entry, if it is still the one that was found.
func (t *tree) open(entry int) (bundle.File, error) {
	m := t.files[entry]
	f, err := m.open()
	if err != nil {
		return nil, noInput(err)
	}
	if now, err := f.Stat(); err != nil || !same(now, m.info) || !os.SameFile(now, m.info) {
		return nil, cmp.Or(err, f.Close(), bundle.ErrChanged)
	}
	return f, nil
}

// readable opens each file once.
func (t *tree) readable() error {
	for i, m := range t.files {
		if m.open == nil {
			continue
		}
		f, err := t.open(i)
		if err != nil {
			return fmt.Errorf("reading %q: %w", t.entries[i].Path, err)
		}
		_ = f.Close()
	}
	return nil
}

// check compares all files with what they were.
func (t *tree) check() error {
	for i, m := range t.files {
		if m.open == nil {
			continue
		}
		if now, err := m.stat(); err != nil || !same(now, m.info) {
			return fmt.Errorf("%q %w", t.entries[i].Path, bundle.ErrChanged)
		}
	}
	return nil
}

// members returns what an interrupted upload has to remember.
func (t *tree) members() (all []kept) {
	for i, e := range t.entries {
		k := kept{Path: e.Path, Length: e.Length, Executable: e.Executable}
		if !e.IsFolder() {
			k.Modified = t.files[i].info.ModTime().UnixNano()
		}
		all = append(all, k)
	}
	return all
}

// count returns the number of entries; a nil tree has none.
func (t *tree) count() int {
	if t == nil {
		return 0
	}
	return len(t.entries)
}

func (t *tree) close() {
	for _, root := range t.roots {
		_ = root.Close()
	}
}

// largeBundle uploads a bundle, and resumes an earlier upload of the same files.
func (u *uploader) largeBundle(ctx context.Context, it item) (f client.File, err error) {
	layout, err := bundle.Plan(it.tree.entries)
	if _, ok := errors.AsType[*bundle.Error](err); ok {
		return f, withCode(exitUsage, err)
	}
	if layout.Length > surelyRead {
		if err := it.tree.readable(); err != nil {
			return f, err
		}
	}
	u.meter.expect(layout.Length)
	src := client.Bundle(it.name, layout, it.tree.open)
	src.Check = it.tree.check
	s, err := u.bundleState(ctx, it)
	return u.resumable(ctx, src, s, err)
}

// bundleState returns the state left by an earlier upload of the same paths. If a file has changed
// since then, it says which one, and begins anew.
func (u *uploader) bundleState(ctx context.Context, it item) (*state, error) {
	var paths []string
	for _, path := range u.Paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	s, err := u.readState(ctx, paths[0], paths[1:])
	if err != nil {
		return nil, err
	}
	now := it.tree.members()
	what := difference(s.Members, now)
	switch {
	case what == "":
		return s, nil
	case s.Members != nil:
		u.meter.print(u.out.Err, "%s since the upload of %s began, so it begins anew", what, printable(it.name))
		u.abort(ctx, s)
		s.Key, s.Session = rand.Text(), ""
	}
	s.Members = now
	return s, writePrivate(s.path, s)
}

// difference says what has become of the first file that is not what it was, or "".
func difference(before, now []kept) string {
	left := map[string]kept{}
	for _, k := range before {
		left[k.Path] = k
	}
	for _, k := range now {
		was, known := left[k.Path]
		if !known {
			return printable(k.Path) + " is new"
		}
		if was != k {
			return printable(k.Path) + " has changed"
		}
		delete(left, k.Path)
	}
	for _, k := range before {
		if _, gone := left[k.Path]; gone {
			return printable(k.Path) + " is gone"
		}
	}
	return ""
}
