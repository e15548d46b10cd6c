package file

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"

	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/bundle"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

const (
	// entriesPage is how many entries an answer lists.
	entriesPage = 1000
	// maxLayouts and maxLayoutBytes bound what a process remembers about bundles.
	maxLayouts, maxLayoutBytes = 16, bundle.MaxDirectory
)

// layouts remembers the contents of the bundles that were last asked for, because parsing a long
// directory takes tens of milliseconds. When it is full, it starts over. It is safe for concurrent
// use.
type layouts struct {
	parsing singleflight.Group // by blob
	mu      sync.Mutex
	byBlob  map[string]*bundle.Layout // a blob's content never changes
	bytes   int64                     // of their directories
}

// parse returns the layout of a blob. If several callers ask at once, one reads it and the others
// wait. If that one fails, for example because its request ends, only it gets the error, and one of
// the others reads again.
func (l *layouts) parse(
	blob string,
	read func() (*bundle.Layout, error),
) (*bundle.Layout, error) {
	for {
		own := false
		found, err, _ := l.parsing.Do(blob, func() (any, error) {
			if layout := l.get(blob); layout != nil {
				return layout, nil
			}
			own = true
			layout, err := read()
			if err == nil {
				l.add(blob, layout)
			}
			return layout, err
		})
		if err == nil || own {
			return found.(*bundle.Layout), err
		}
	}
}

func (l *layouts) get(blob string) *bundle.Layout {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byBlob[blob]
}

func (l *layouts) add(blob string, layout *bundle.Layout) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byBlob == nil || len(l.byBlob) == maxLayouts || l.bytes >= maxLayoutBytes {
		l.byBlob, l.bytes = map[string]*bundle.Layout{}, 0
	}
	l.byBlob[blob] = layout
	l.bytes += layout.Length - layout.Directory
}

// openBundle returns the bytes of a bundle and its layout. Unless the layout is remembered, it
// costs a call to the store for the directory, and another if the directory is long. Of several
// requests at once, only one pays for it.
func (d *download) openBundle() (io.ReadSeekCloser, *bundle.Layout, error) {
	f, ctx := d.link.File, d.r.Context()
	if f.Entries == 0 {
		return nil, nil, fault.New(fault.Invalid, "this file is not a bundle")
	}
	layout := d.layouts.get(f.Blob)
	if layout == nil && d.isGet {
		if err := d.mayGive(min(f.Length, bundle.MaxDirectory)); err != nil {
			return nil, nil, err
		}
	}
	content, err := d.files.Open(ctx, f, d.reread)
	if err != nil || layout != nil {
		return content, layout, err
	}
	layout, err = d.layouts.parse(f.Blob, func() (*bundle.Layout, error) {
		layout, err := files.Directory(ctx, content, f.Length)
		if err == nil {
			d.used.Bytes += f.Length - layout.Directory
		}
		return layout, err
	})
	if err != nil {
		content.Close()
		if _, ok := errors.AsType[*bundle.Error](err); ok { // it was checked when it arrived
			err = fmt.Errorf("%w: %w", files.ErrLost, err)
		}
		return nil, nil, fault.Wrap(err, "reading a bundle")
	}
	return content, layout, nil
}

// entries lists a bundle.
func (d *download) entries() error {
	after, err := param.Number(d.r, "after", 0, bundle.MaxEntries, 0)
	if err != nil {
		return err
	}
	content, layout, err := d.openBundle()
	if err != nil {
		return err
	}
	content.Close()
	from := min(int(after), len(layout.Entries))
	to := min(from+entriesPage, len(layout.Entries))
	if to < len(layout.Entries) {
		claim := ""
		if d.claim != "" {
			claim = "&claim=" + url.QueryEscape(d.claim)
		}
		next := fmt.Sprintf(`<%s&entries&after=%d%s>; rel="next"`, d.plainAddress(), to, claim)
		d.w.Header().Set("Link", next)
	}
	out := wire.Entries{Entries: make([]wire.Entry, 0, to-from)}
	for _, e := range layout.Entries[from:to] {
		out.Entries = append(out.Entries, wire.Entry{
			Path:       e.Path,
			Length:     e.Length,
			Modified:   e.Modified,
			Executable: e.Executable,
			Offset:     e.Offset,
			CRC32:      fmt.Sprintf("%08x", e.CRC32),
		})
	}
	return envelope.WriteJSON(d.w, http.StatusOK, out)
}

// errNotAsSaid says that a bundle contradicts itself, which only its sender can fix. Its bytes are
// as they were sent, as the checksum of the whole bundle shows.
var errNotAsSaid = fault.New(fault.Conflict,
	"the bytes of this file in the bundle differ from what the bundle's directory says")

// entry sends one file of a bundle. If the link has a limit, the claim takes a download once the
// file is found.
func (d *download) entry() error {
	archive, layout, err := d.openBundle()
	if err != nil {
		return err
	}
	defer archive.Close()
	name := d.query.Get("entry")
	at := slices.IndexFunc(layout.Entries, func(e bundle.Entry) bool {
		return e.Path == name && !e.IsFolder()
	})
	if at < 0 {
		return fault.New(fault.NotFound, "the bundle has no such file")
	}
	e := layout.Entries[at]
	if err := agrees(archive, e); err != nil {
		return err
	}
	if d.link.Guarded() && d.isGet {
		if err := d.take(); err != nil {
			return err
		}
	}
	f := d.link.File
	f.Name = cmp.Or(wire.CleanFileName(path.Base(e.Path)), "file")
	f.Length = e.Length
	f.SHA256 = nil
	f.Type, f.Modified = wire.TypeOf(e.Path), e.Modified.UnixMilli()
	c := content{
		file:   f,
		tag:    fmt.Sprintf(`"%s-%x-%x"`, f.CRC64, e.Offset, e.Length),
		body:   io.NewSectionReader(readerAt{archive}, e.Offset, e.Length),
		wrong:  errNotAsSaid,
		sum:    binary.BigEndian.AppendUint32(nil, e.CRC32),
		newSum: func() hash.Hash { return crc32.NewIEEE() },
	}
	redirects, err := d.begin(f.Length, c.tag)
	if err != nil {
		return err
	}
	if redirects {
		done, err := d.redirectEntry(e, f)
		if done || err != nil {
			return err
		}
	}
	directory := d.used.Bytes
	err = d.send(c)
	d.used.Bytes += directory
	if d.used.Whole { // one of many, like a range
		d.used.Source = identity.Source(d.r)
	}
	return err
}

// agrees compares a file's local header with the directory.
func agrees(archive io.ReadSeeker, e bundle.Entry) error {
	header := make([]byte, e.Offset-e.Header)
	if _, err := (readerAt{archive}).ReadAt(header, e.Header); err != nil {
		return fault.Wrap(err, "reading a bundle")
	}
	if e.Agrees(header) != nil {
		return errNotAsSaid
	}
	return nil
}

// redirectEntry redirects to the store's copy of a file in a bundle. If the store cannot make one,
// done is false.
func (d *download) redirectEntry(e bundle.Entry, f files.File) (done bool, err error) {
	rest := e.Length - d.used.Begun // all of it is copied, whatever the range
	if rest > 0 {
		if err := d.mayGive(rest); err != nil {
			return false, err
		}
	}
	url, err := d.files.SignRange(
		d.r.Context(),
		d.link.File,
		d.reread,
		e.Offset,
		e.Length,
		signed(f),
	)
	if errors.Is(err, blob.ErrUnsupported) {
		return false, nil
	}
	if err == nil {
		d.sendAway(url)
	}
	return true, err
}

// readerAt reads a bundle at a position, for an io.SectionReader.
type readerAt struct{ io.ReadSeeker }

// ReadAt implements io.ReaderAt, but moves the position of the bundle.
func (r readerAt) ReadAt(b []byte, from int64) (int, error) {
	if _, err := r.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(r, b)
}
