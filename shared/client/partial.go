package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// partial is a file of which parts have come. Beside its bytes, in path.part, is
// path.part.json, which says whose they are and which are missing. It is safe for
// concurrent use.
type partial struct {
	path string // of the bytes
	file *os.File

	mu      sync.Mutex
	remote  Remote
	missing []span // in order, not taken
	taken   map[*span]bool
}

// record is what path.part.json holds.
type record struct {
	ETag    string `json:"etag"`
	Length  int64  `json:"length"`
	Missing []span `json:"missing"`
}

// openPartial opens what an earlier download of the same file has left, or
// begins anew.
func openPartial(path string, r Remote) (*partial, error) {
	p := &partial{path: path + ".part", remote: r, taken: map[*span]bool{}}
	missing, known := p.recorded()
	flags := os.O_RDWR | os.O_CREATE
	if !known {
		flags |= os.O_TRUNC
		missing = nil
		if r.Length > 0 {
			missing = []span{{0, r.Length}}
		}
	}
	file, err := os.OpenFile(p.path, flags, 0o666)
	if err != nil {
		return nil, &local{err}
	}
	p.file, p.missing = file, missing
	return p, nil
}

// recorded reads the record, if it is of the same file.
func (p *partial) recorded() (missing []span, ok bool) {
	text, err := os.ReadFile(p.path + ".json")
	if err != nil {
		return nil, false
	}
	if info, err := os.Lstat(p.path); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	var r record
	if json.Unmarshal(text, &r) != nil || r.ETag != p.remote.ETag || r.Length != p.remote.Length {
		return nil, false
	}
	end := int64(0)
	for _, s := range r.Missing {
		if s.From < end || s.To <= s.From || s.To > r.Length {
			return nil, false
		}
		end = s.To
	}
	return r.Missing, true
}

// have is how many bytes have come.
func (p *partial) have() int64 {
	n := p.remote.Length
	for _, s := range p.left() {
		n -= s.To - s.From
	}
	return n
}

// take returns a missing span of at most size bytes, nil if there is none. Its
// From is to be advanced by write.
func (p *partial) take(size int64) *span {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.missing) == 0 {
		return nil
	}
	s := p.missing[0]
	if s.To-s.From > size {
		s.To = s.From + size
		p.missing[0].From = s.To
	} else {
		p.missing = p.missing[1:]
	}
	p.taken[&s] = true
	return &s
}

// write stores the next bytes of a taken span.
func (p *partial) write(s *span, b []byte) error {
	if _, err := p.file.WriteAt(b, s.From); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.From += int64(len(b)); s.From >= s.To {
		delete(p.taken, s)
	}
	return nil
}

// left is what is missing, in order, with what is under way.
func (p *partial) left() []span {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(p.missing)
	for s := range p.taken {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b span) int { return int(min(1, max(-1, a.From-b.From))) })
	return all
}

// save records what has come, once it is on disk.
func (p *partial) save() error {
	text, err := json.Marshal(record{p.remote.ETag, p.remote.Length, p.left()})
	if err != nil {
		return fmt.Errorf("writing what has arrived: %w", err)
	}
	if err := p.file.Sync(); err != nil {
		return &local{err}
	}
	if err := os.WriteFile(p.path+".json.new", text, 0o600); err != nil {
		_ = os.Remove(p.path + ".json.new")
		return &local{err}
	}
	if err := os.Rename(p.path+".json.new", p.path+".json"); err != nil {
		return &local{err}
	}
	return nil
}

// finish gives the whole file its name, which replaces another only by force.
func (p *partial) finish(path string, force bool) error {
	if err := p.file.Sync(); err != nil {
		return &local{err}
	}
	if err := place(p.path, path, force); err != nil {
		return err
	}
	p.forget()
	return nil
}

// place renames. A link fails where the name is taken, which a rename would
// overwrite; some file systems have no links.
func place(from, to string, force bool) error {
	if !force {
		err := os.Link(from, to)
		if err == nil {
			return nil // forget removes the other name
		}
		if _, statErr := os.Lstat(to); errors.Is(err, fs.ErrExist) || statErr == nil {
			return fmt.Errorf("%w: %s", ErrExists, to)
		}
	}
	if err := os.Rename(from, to); err != nil {
		return &local{err}
	}
	return nil
}

// forget removes what was kept to go on with.
func (p *partial) forget() {
	_ = p.file.Close()
	_ = os.Remove(p.path)
	_ = os.Remove(p.path + ".json")
}
