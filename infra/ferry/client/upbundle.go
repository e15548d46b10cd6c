package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/bundle"
	"ferry/shared/client"
	"ferry/shared/wire"
)

// surelyRead is the length from which a bundle takes so long to send that a file which cannot be
// read must be reported beforehand.
const surelyRead = 64 << 20

// tree is what goes into a bundle.
type tree struct {
	entries []bundle.Entry
	files   []member // one for each entry, in the same order

	tops map[string]string // the paths that the user named, by their first element in the bundle
	name string            // of the first folder

	taken   map[string]bool // the paths in the bundle, folders without their slash
	refused []uploaded      // what cannot have its name in a bundle
}

// member is a file or an empty folder of a bundle.
type member struct {
	path string
	info fs.FileInfo
}

// bundles reports whether the paths become one bundle.
func (c Up) bundles() bool { return !c.Each && (len(c.Paths) > 1 || isFolder(c.Paths[0])) }

// collectBundle finds what goes into the bundle. The bundle is the only item.
func (u *uploader) collectBundle() (all []item, refused []uploaded) {
	t := &tree{tops: map[string]string{}, taken: map[string]bool{}}
	for _, path := range u.Paths {
		if err := u.take(t, path); err != nil {
			return nil, []uploaded{u.refuse(path, err)}
		}
	}
	if len(t.entries) == 0 {
		return nil, t.refused
	}
	it := item{name: u.bundleName(t), size: -1, tree: t}
	it.path = it.name
	if len(u.Paths) == 1 {
		it.path = u.Paths[0]
	}
	return []item{it}, t.refused
}

// bundleName returns the name of the bundle: the one that the user chose, or that of the first
// folder, or of the folder in which all files were named.
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

// take adds a file or folder that the user named.
func (u *uploader) take(t *tree, named string) error {
	whole, err := filepath.Abs(named)
	if err != nil {
		return err
	}
	top := wire.UTF8(filepath.Base(whole)) // this also names . and ..
	if other, taken := t.tops[top]; taken {
		return cli.Usage("%s would have the same name in the bundle", cli.Printable(other))
	}
	t.tops[top] = named
	return u.walk(named, func(at string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(named, at)
		if err != nil {
			return err
		}
		name := path.Join(top, wire.UTF8(filepath.ToSlash(inside)))
		if err := t.checkName(name); err != nil {
			t.refused = append(t.refused, u.refuse(at, err))
			if info.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case info.IsDir():
			t.name = cmp.Or(t.name, top)
			name += "/"
		case !info.Mode().IsRegular():
			return cli.Usage("it is neither a file nor a folder")
		}
		return t.add(name, member{at, info})
	})
}

// checkName refuses a path that the bundle cannot contain. The other files can be sent without this one.
func (t *tree) checkName(name string) error {
	err := bundle.CheckPath(name)
	if odd, ok := errors.AsType[*bundle.Error](err); ok {
		return cli.Usage("left out: its path in the bundle %s", odd.Reason)
	}
	if t.taken[name] { // the names of two files may differ only in their charset
		return cli.Usage("left out: another one has the same name in the bundle")
	}
	t.taken[name] = true
	return err
}

// add adds an entry. A folder needs one only if it is empty.
func (t *tree) add(path string, m member) error {
	last := len(t.entries) - 1
	if last >= 0 &&
		t.entries[last].IsFolder() &&
		strings.HasPrefix(path, t.entries[last].Path) {
		t.entries, t.files = t.entries[:last], t.files[:last]
	}
	if len(t.entries) == bundle.MaxEntries {
		return cli.Usage("a bundle can have at most 10,000 files and empty folders, and there are more here; " +
			"make several bundles, or use --each")
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
	f, err := os.Open(m.path)
	if err != nil {
		return nil, noInput(err)
	}
	if err := m.check(f.Stat()); err != nil {
		return nil, cmp.Or(f.Close(), err)
	}
	return f, nil
}

// check returns an error unless the file is now what it was.
func (m member) check(now fs.FileInfo, err error) error {
	if err == nil && !(same(now, m.info) && os.SameFile(now, m.info)) {
		err = bundle.ErrChanged
	}
	return err
}

// each calls check for all files. Its error names the file.
func (t *tree) each(check func(entry int) error) error {
	for i, e := range t.entries {
		if e.IsFolder() {
			continue
		}
		if err := check(i); err != nil {
			return fmt.Errorf("%q: %w", e.Path, err)
		}
	}
	return nil
}

func (t *tree) readable(entry int) error {
	f, err := t.open(entry)
	if err != nil {
		return err
	}
	return f.Close()
}

func (t *tree) unchanged(entry int) error {
	return t.files[entry].check(os.Stat(t.files[entry].path))
}

// count returns the number of entries; a nil tree has none.
func (t *tree) count() int {
	if t == nil {
		return 0
	}
	return len(t.entries)
}

// uploadBundle uploads a bundle, and resumes an earlier upload of the same files.
func (u *uploader) uploadBundle(ctx context.Context, it item) (f client.File, err error) {
	layout, err := bundle.Plan(it.tree.entries)
	if _, ok := errors.AsType[*bundle.Error](err); ok {
		return f, cli.WithCode(cli.ExitUsage, err)
	}
	if layout.Length > surelyRead {
		if err := it.tree.each(it.tree.readable); err != nil {
			return f, err
		}
	}
	u.meter.Expect(layout.Length)
	src := client.Bundle(it.name, layout, it.tree.open)
	src.Check = func() error { return it.tree.each(it.tree.unchanged) }
	marks := map[string]string{}
	for _, e := range it.tree.entries {
		marks[e.Path] = markOf(e)
	}
	return u.resumable(ctx, src, u.Paths, marks)
}
