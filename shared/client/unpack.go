package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"ferry/shared/bundle"
)

// UnpackOptions say what to unpack from a bundle, and where to.
type UnpackOptions struct {
	// Verify.Started gets the length of the chosen files, and of those that are already here.
	// CRC64NVME is not used: each file has its own CRC-32.
	Verify
	// Path is a folder, which is made if needed. Empty means this folder or, if not everything in
	// the bundle is in one folder, a new folder in it with the name of the bundle.
	Path        string
	Force       bool                   // replace existing files
	Connections int                    // in parallel; 4 if 0
	Only        func(path string) bool // chooses entries; nil means all
}

// Unpacked is a bundle that was unpacked.
type Unpacked struct {
	Name   string // of the bundle
	Path   string // the folder
	Files  int    // how many were chosen
	Length int64  // theirs, in bytes
}

// Unpack downloads the files of a bundle, several stretches of it at once. Each file has a
// temporary name until it is complete and its CRC-32 is right. Files that are already here are not
// loaded again, so an interrupted Unpack is resumed by another one. It writes nothing outside the
// folder. If something is in the way, or cannot have its name here, it writes nothing at all.
func (c *Client) Unpack(
	ctx context.Context,
	link string,
	o UnpackOptions,
) (got Unpacked, err error) {
	base := cmp.Or(o.Path, ".")
	from := o.Verify.from(c, link, earlierClaim(base, link))
	progress := from.verify.Progress
	from.verify.Progress = func(int64) {} // only the bytes of files count
	remote, err := from.head(ctx)
	if err != nil {
		return got, err
	}
	u, err := openUnpacking(base, remote)
	defer func() { u.close(err == nil) }()
	if err != nil {
		return got, err
	}
	from.keep = u.keep
	if from.at != link {
		if err := u.keep(from.at); err != nil {
			return got, err
		}
	}
	source := func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		return from.read(ctx, span{off, off + n}), nil
	}
	layout, err := bundle.Read(ctx, source, remote.Length)
	if err != nil {
		return got, err
	}
	u.force, u.progress = o.Force, progress
	got = u.choose(layout.Entries, o)
	if len(u.entries) == 0 {
		return got, fmt.Errorf("%w in the bundle", ErrNotFound)
	}
	if err := u.checkNames(); err != nil {
		return got, err
	}
	have, err := u.findMissing(ctx)
	if err != nil {
		return got, err
	}
	from.verify.Started(Remote{Name: remote.Name, Length: got.Length}, have)
	return got, u.load(ctx, from, o.Connections)
}

// unpackingExt is what follows the bundle's name in the name of the folder for incomplete files.
const unpackingExt = ".unpacking"

// unpacking is an Unpack in progress.
type unpacking struct {
	root     *os.Root // where the options say
	made     bool     // root was made for this
	remote   Remote
	folder   string // in root, where the entries go; "" is root
	force    bool
	progress func(int64)
	entries  []bundle.Entry // those to unpack, in the order of the archive
	missing  []int          // the indices of those that are not here

	mu       sync.Mutex
	arriving map[int]*arriving // by entry
	wrong    []error           // about files with wrong bytes
}

// openUnpacking opens the folder to unpack to. It must be closed even after an error.
func openUnpacking(base string, r Remote) (u *unpacking, err error) {
	u = &unpacking{remote: r, arriving: map[int]*arriving{}}
	info, err := os.Stat(base)
	if err == nil && !info.IsDir() {
		return u, fmt.Errorf("%w and is not a folder: %s", ErrExists, base)
	}
	u.made = err != nil
	if u.made {
		if err := os.MkdirAll(base, 0o777); err != nil {
			return u, err
		}
	}
	if u.root, err = os.OpenRoot(base); err != nil {
		return u, err
	}
	_ = u.root.RemoveAll(u.temporary()) // a kill has left it; if it stays, the next call fails
	return u, u.root.Mkdir(u.temporary(), 0o700)
}

// temporary returns the folder for incomplete files.
func (u *unpacking) temporary() string { return beginning(u.remote.Name) + unpackingExt }

// note returns the file that has the address of a claim, for earlierClaim.
func (u *unpacking) note() string { return u.temporary() + ".part.json" }

// keep records the address of a claim before it is used.
func (u *unpacking) keep(claim string) error {
	r := record{
		ETag:    u.remote.ETag,
		Length:  u.remote.Length,
		Missing: []*span{{0, u.remote.Length}},
		Claim:   claim,
	}
	return r.write(filepath.Join(u.root.Name(), u.note()))
}

// close removes what is temporary. A claim stays until everything is here.
func (u *unpacking) close(complete bool) {
	if u.root == nil {
		return
	}
	for _, a := range u.arriving {
		_ = a.file.Close()
	}
	_ = u.root.RemoveAll(u.temporary())
	if complete {
		_ = u.root.Remove(u.note())
	}
	_ = u.root.Close()
	if u.made {
		_ = os.Remove(u.root.Name()) // which fails unless it is empty
	}
}

// choose notes what to unpack, and where to. It returns a description.
func (u *unpacking) choose(all []bundle.Entry, o UnpackOptions) (got Unpacked) {
	top, _, _ := strings.Cut(all[0].Path, "/")
	for _, e := range all {
		if first, _, _ := strings.Cut(e.Path, "/"); first != top && o.Path == "" {
			u.folder = strings.TrimSuffix(u.remote.Name, path.Ext(u.remote.Name))
		}
		if o.Only == nil || o.Only(e.Path) {
			u.entries = append(u.entries, e)
			if !e.IsFolder() {
				got.Files, got.Length = got.Files+1, got.Length+e.Length
			}
		}
	}
	got.Name, got.Path = u.remote.Name, filepath.Join(u.root.Name(), u.folder)
	return got
}

// target returns where an entry goes, in root.
func (u *unpacking) target(e bundle.Entry) string { return path.Join(u.folder, e.Path) }

// findMissing notes which entries to load, and returns how many bytes of the other entries are
// here. A file with different bytes is in the way.
func (u *unpacking) findMissing(ctx context.Context) (have int64, err error) {
	for i, e := range u.entries {
		there, err := u.have(ctx, e)
		switch {
		case err != nil:
			return 0, err
		case there:
			have += e.Length
		default:
			u.missing = append(u.missing, i)
		}
	}
	return have, nil
}

// have reports whether an entry is here. If something else is in its place that must not be
// replaced, the error is an ErrExists.
func (u *unpacking) have(ctx context.Context, e bundle.Entry) (bool, error) {
	target := u.target(e)
	info, err := u.root.Lstat(target)
	inTheWay := fmt.Errorf("%w: %s", ErrExists, filepath.Join(u.root.Name(), target))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return false, inTheWay
	case err != nil:
		return false, err
	case e.IsFolder():
		if info, err = u.root.Stat(target); err != nil || !info.IsDir() {
			return false, inTheWay
		}
		return true, nil
	case info.Mode().IsRegular() && info.Size() == e.Length:
		same, err := u.sameBytes(ctx, target, e)
		if same || err != nil || u.force {
			return same, err
		}
	case u.force && (info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink):
		return false, nil
	}
	return false, inTheWay
}

// sameBytes compares a file with the CRC-32 of its entry.
func (u *unpacking) sameBytes(
	ctx context.Context,
	target string,
	e bundle.Entry,
) (bool, error) {
	f, err := u.root.Open(target)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, ending{ctx, f}); err != nil {
		return false, err
	}
	return sum.Sum32() == e.CRC32, nil
}
