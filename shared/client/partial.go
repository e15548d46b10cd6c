package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"ferry/shared/wire"
)

// partial is a partly downloaded file. Its bytes are in path.part, with a name that is shortened if
// it would be too long. Beside it, path.part.json says which file they belong to, and which are
// missing. It is safe for concurrent use.
type partial struct {
	path   string // of the bytes
	file   *os.File
	remote Remote

	mu    sync.Mutex
	spans []*span // in order; each shrinks as its bytes arrive
	claim string  // the address of the claim that pays for the download; "" if it needs none

	saving sync.Mutex // held while the record is written
}

// longestExt is the longest extension that a temporary name gets.
const longestExt = unpackingExt + ".part.json.new"

// beginning returns what the names of unfinished files begin with: the name of the complete file
// or, if that is too long, as much of it as fits, with a mark that tells it from others with the
// same beginning.
func beginning(name string) string {
	most := wire.MaxFileName - len(longestExt)
	if len(name) <= most {
		return name
	}
	mark := fmt.Sprintf("~%08x", crc32.ChecksumIEEE([]byte(name)))
	cut := most - len(mark)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + mark
}

// record is what path.part.json holds.
type record struct {
	ETag    string  `json:"etag"`
	Length  int64   `json:"length"`
	Missing []*span `json:"missing"`
	Claim   string  `json:"claim,omitempty"` // the address of the claim
}

// openPartial opens what an earlier download of the same file has left, or starts
// over. Other users may write to this folder too, so it follows no links.
func openPartial(path string, r Remote) (p *partial, err error) {
	p = &partial{
		path:   filepath.Join(filepath.Dir(path), beginning(filepath.Base(path))) + ".part",
		remote: r,
	}
	if !p.resume() {
		p.spans = []*span{{0, r.Length}}
		p.file, err = createOwn(p.path, 0o666)
	}
	return p, err
}

// resume opens the bytes, if they and their record belong to the caller and to the
// same file.
func (p *partial) resume() bool {
	r, err := readRecord(p.path + ".json")
	if err != nil || !r.isOf(p.remote) {
		return false
	}
	p.spans = r.Missing
	p.file, err = openOwn(p.path)
	return err == nil
}

// readRecord reads a record that belongs to the caller.
func readRecord(path string) (r record, err error) {
	f, err := openOwn(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	return r, json.NewDecoder(io.LimitReader(f, maxAnswer)).Decode(&r)
}

// isOf reports whether a record is whole, and of this file.
func (r record) isOf(file Remote) bool {
	end := int64(0)
	for _, s := range r.Missing {
		if s == nil || s.From < end || s.To <= s.From || s.To > r.Length {
			return false
		}
		end = s.To
	}
	return r.ETag == file.ETag && r.Length == file.Length
}

// openOwn opens a regular file that belongs to the caller.
func openOwn(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !owned(info) {
		return nil, fs.ErrPermission
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) { // it was replaced in between
		err = fs.ErrPermission
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// createOwn creates a file in place of an earlier one. It refuses to replace anything
// but a regular file, and never writes to what was there.
func createOwn(path string, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w and is not a regular file: %s", ErrExists, path)
	}
	_ = os.Remove(path) // if it is still there, the next call fails
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

// have returns how many bytes have arrived.
func (p *partial) have() int64 {
	n := p.remote.Length
	for _, s := range p.missing() {
		n -= s.To - s.From
	}
	return n
}

// split cuts what is missing into spans of at most size bytes.
func (p *partial) split(size int64) {
	var all []*span
	for _, s := range p.spans {
		for ; s.To-s.From > size; s.From += size {
			all = append(all, &span{s.From, s.From + size})
		}
		all = append(all, s)
	}
	p.spans = all
}

// write stores the next bytes of a span.
func (p *partial) write(s *span, b []byte) error {
	if _, err := p.file.WriteAt(b, s.From); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.From += int64(len(b))
	return nil
}

// missing returns the missing spans in order, those in progress included.
func (p *partial) missing() (all []*span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.spans {
		switch last := len(all) - 1; {
		case s.From == s.To:
		case last >= 0 && all[last].To == s.From:
			all[last].To = s.To
		default:
			all = append(all, &span{s.From, s.To})
		}
	}
	return all
}

// keep records the address of a claim before it is used.
func (p *partial) keep(claim string) error {
	p.mu.Lock()
	p.claim = claim
	p.mu.Unlock()
	return p.save()
}

// save records what has arrived, once it is on disk.
func (p *partial) save() error {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.mu.Lock()
	r := record{ETag: p.remote.ETag, Length: p.remote.Length, Claim: p.claim}
	p.mu.Unlock()
	r.Missing = p.missing()
	if err := p.file.Sync(); err != nil {
		return err
	}
	return r.write(p.path + ".json")
}

// write writes a record to a file, in one step.
func (r record) write(path string) error {
	text, _ := json.Marshal(r) // never fails
	f, err := createOwn(path+".new", 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = os.Remove(path + ".new")
		return err
	}
	return os.Rename(path+".new", path)
}

// finish gives the complete file its name. It replaces another file only if force is set.
func (p *partial) finish(path string, force bool) error {
	if err := p.file.Sync(); err != nil {
		return err
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := rename(folder, filepath.Base(p.path), filepath.Base(path), force); err != nil {
		return err
	}
	p.forget()
	return nil
}

// rename renames a file in a folder. It tries a link first: that fails if the name is taken,
// whereas a rename would overwrite the file. Some file systems have no links.
func rename(folder *os.Root, from, to string, force bool) error {
	if !force {
		err := folder.Link(from, to)
		if err == nil {
			return nil // the caller removes the other name
		}
		if _, statErr := folder.Lstat(to); errors.Is(err, fs.ErrExist) || statErr == nil {
			return fmt.Errorf("%w: %s", ErrExists, filepath.Join(folder.Name(), to))
		}
	}
	return folder.Rename(from, to)
}

// forget removes what was kept to resume.
func (p *partial) forget() {
	_ = p.file.Close()
	_ = os.Remove(p.path)
	_ = os.Remove(p.path + ".json")
}
