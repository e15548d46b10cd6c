package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"sync"
)

// ErrChanged is returned if the bytes of a file are no longer those that were read before, or fewer
// than planned.
var ErrChanged = errors.New("changed while it was read")

// File is an open file of a bundle.
type File interface {
	io.ReaderAt
	io.Closer
}

// Parts makes the parts of a bundle, each by itself and as often as needed. It reads the files;
// memory does not grow with them. It is safe for concurrent use.
//
// A header needs the checksum of its file, and the directory those of all. Parts remembers the
// checksum of each share of a file that it has read. If a checksum is missing, it reads the file
// ahead. If a file changes later, reading it fails with ErrChanged: what was sent always agrees.
type Parts struct {
	layout *Layout
	size   int64
	open   func(entry int) (File, error)

	mu   sync.Mutex
	sums map[share]uint32
}

// shortFile is the length in bytes of a file that is kept in memory while its header is sent.
const shortFile = 64 << 10

// share is what a part has of a file's bytes.
type share struct{ entry, part int }

// NewParts cuts a planned bundle into parts of size bytes, at least 1; the last may be shorter. open
// opens the file of an entry, by its index. It is not called for empty files and folders. Several
// goroutines call it at once.
func NewParts(l *Layout, size int64, open func(entry int) (File, error)) *Parts {
	return &Parts{layout: l, size: size, open: open, sums: map[share]uint32{}}
}

// Count returns the number of parts.
func (p *Parts) Count() int { return int((p.layout.Length + p.size - 1) / p.size) }

// Order returns the numbers of all parts, from 1, in the order that reads the least ahead: a part
// with the header of a file that is longer than a part comes after the parts with that file's bytes,
// and the directory comes last. Any other order gives the same bytes.
func (p *Parts) Order() []int {
	var first, headers, last []int
	for number := 1; number <= p.Count(); number++ {
		switch {
		case p.endOf(number) > p.layout.Directory:
			last = append(last, number)
		case p.hasLongHeader(number):
			headers = append(headers, number)
		default:
			first = append(first, number)
		}
	}
	slices.Reverse(headers) // one may also have the end of the file before
	return slices.Concat(first, headers, last)
}

// hasLongHeader reports whether a part has a header, or some bytes of one, of a file that is longer
// than a part.
func (p *Parts) hasLongHeader(number int) bool {
	return slices.ContainsFunc(p.pieces(number), func(c piece) bool {
		return c.kind == header && p.layout.Entries[c.entry].Length > p.size
	})
}

// endOf returns where a part ends.
func (p *Parts) endOf(number int) int64 { return min(int64(number)*p.size, p.layout.Length) }

func (p *Parts) pieces(number int) []piece {
	return p.layout.pieces(int64(number-1)*p.size, p.endOf(number))
}

// kind is what a piece is of.
type kind int

const (
	header kind = iota
	content
	directory
)

// piece is a range of a header, of a file's bytes, or of the directory and the end records.
type piece struct {
	kind
	entry       int
	off, length int64 // within the header, the file or the directory
}

// pieces returns what lies from one offset in the bundle to another.
func (l *Layout) pieces(from, to int64) (found []piece) {
	add := func(k kind, entry int, begin, end int64) {
		if first, last := max(from, begin), min(to, end); first < last {
			found = append(found, piece{k, entry, first - begin, last - first})
		}
	}
	i, _ := slices.BinarySearchFunc(l.Entries, from, func(e Entry, from int64) int {
		if e.Offset+e.Length <= from {
			return -1
		}
		return 1
	})
	for ; i < len(l.Entries) && l.Entries[i].Header < to; i++ {
		e := l.Entries[i]
		add(header, i, e.Header, e.Offset)
		add(content, i, e.Offset, e.Offset+e.Length)
	}
	add(directory, 0, l.Directory, l.Length)
	return found
}

// Open returns a reader of a part, by its number from 1 to Count. The reader is for one goroutine,
// and must be closed. Its reads end with the context. Their errors name the file and wrap
// ErrChanged or what open and the file returned.
func (p *Parts) Open(ctx context.Context, number int) io.ReadCloser {
	return &partReader{ctx: ctx, parts: p, number: number, rest: p.pieces(number)}
}

// checksum returns the CRC-32 of a file. It reads the shares whose checksum is not known.
func (p *Parts) checksum(ctx context.Context, entry int) (sum uint32, err error) {
	e := p.layout.Entries[entry]
	for from := e.Offset; from < e.Offset+e.Length; {
		number := int(from/p.size) + 1
		to := min(p.endOf(number), e.Offset+e.Length)
		next, err := p.shareSum(ctx, number, piece{content, entry, from - e.Offset, to - from})
		if err != nil {
			return 0, err
		}
		sum, from = CombineCRC32(sum, next, to-from), to
	}
	return sum, nil
}

// shareSum returns the CRC-32 of a part's share of a file. It reads the share if needed.
func (p *Parts) shareSum(ctx context.Context, number int, c piece) (uint32, error) {
	p.mu.Lock()
	sum, known := p.sums[share{c.entry, number}]
	p.mu.Unlock()
	if known {
		return sum, nil
	}
	r := &partReader{ctx: ctx, parts: p, number: number, rest: []piece{c}}
	defer r.Close()
	h := crc32.NewIEEE()
	_, err := io.Copy(h, r)
	return h.Sum32(), err
}

// remember keeps the checksum of a part's share of a file. It fails if there was another one.
func (p *Parts) remember(number int, c piece, sum uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := share{c.entry, number}
	if before, known := p.sums[key]; known && before != sum {
		return p.changed(c)
	}
	p.sums[key] = sum
	return nil
}

func (p *Parts) changed(c piece) error {
	return fmt.Errorf("%q %w", p.layout.Entries[c.entry].Path, ErrChanged)
}

// bytes returns a piece that is not of a file.
func (p *Parts) bytes(ctx context.Context, c piece) (whole []byte, err error) {
	if c.kind == header {
		e := p.layout.Entries[c.entry]
		e.CRC32, err = p.checksum(ctx, c.entry)
		return e.local(), err
	}
	l := *p.layout
	l.Entries = slices.Clone(l.Entries)
	for i := range l.Entries {
		if l.Entries[i].CRC32, err = p.checksum(ctx, i); err != nil {
			return nil, err
		}
	}
	return l.tail(), nil
}

// partReader reads pieces one after the other.
type partReader struct {
	ctx    context.Context
	parts  *Parts
	number int
	rest   []piece // the first is the current one
	err    error   // what ended reading

	reader io.Reader // of the current piece, or nil
	left   int64     // bytes of the current piece
	file   File      // of the current piece, or nil
	short  []byte    // the file after the current header, or nil
	sum    hash.Hash32
}

// Read fills b, as a piece may be a few bytes long, and each write to a connection costs the same.
func (r *partReader) Read(b []byte) (n int, err error) {
	for n < len(b) && r.err == nil {
		switch {
		case r.ctx.Err() != nil:
			r.err = context.Cause(r.ctx)
		case len(r.rest) == 0:
			r.err = io.EOF
		case r.reader == nil:
			r.err = r.begin(r.rest[0])
		default:
			var more int
			more, r.err = r.read(b[n:], r.rest[0])
			n += more
		}
	}
	if n > 0 {
		return n, nil // the next call returns the error
	}
	return 0, r.err
}

// begin opens a piece.
func (r *partReader) begin(c piece) (err error) {
	r.left = c.length
	if err := r.readShort(); err != nil {
		return err
	}
	if c.kind == content && r.short != nil {
		r.sum = crc32.NewIEEE()
		r.reader, r.short = io.TeeReader(bytes.NewReader(r.short), r.sum), nil
		return nil
	}
	if c.kind != content {
		whole, err := r.parts.bytes(r.ctx, c)
		if err != nil {
			return err
		}
		r.reader = bytes.NewReader(whole[c.off:])
		return nil
	}
	if r.file, err = r.parts.open(c.entry); err != nil {
		return r.failed(c, err)
	}
	r.sum = crc32.NewIEEE()
	r.reader = io.TeeReader(io.NewSectionReader(r.file, c.off, c.length), r.sum)
	return nil
}

// readShort reads a short file that follows its header, if that comes next: the header needs its
// checksum, and so it is opened once for both.
func (r *partReader) readShort() error {
	if len(r.rest) < 2 || r.rest[0].kind != header || r.rest[1].kind != content {
		return nil
	}
	c := r.rest[1]
	if c.length > shortFile || c.length < r.parts.layout.Entries[c.entry].Length {
		return nil
	}
	whole := &partReader{ctx: r.ctx, parts: r.parts, number: r.number, rest: []piece{c}}
	defer whole.Close()
	text := make([]byte, c.length)
	if _, err := io.ReadFull(whole, text); err != nil {
		return err
	}
	r.short = text
	return nil
}

// read reads from a piece. It withholds the last bytes of one that has changed.
func (r *partReader) read(b []byte, c piece) (int, error) {
	n, err := r.reader.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	switch {
	case err != nil && err != io.EOF:
		err = r.failed(c, err)
	case r.left == 0:
		err = r.finish(c)
	case err == io.EOF:
		err = r.parts.changed(c) // it is shorter now
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// finish closes a piece that was read to its end.
func (r *partReader) finish(c piece) error {
	r.rest, r.reader = r.rest[1:], nil
	if c.kind != content {
		return nil
	}
	if err := r.Close(); err != nil {
		return r.failed(c, err)
	}
	return r.parts.remember(r.number, c, r.sum.Sum32())
}

func (r *partReader) failed(c piece, err error) error {
	return fmt.Errorf("reading %q: %w", r.parts.layout.Entries[c.entry].Path, err)
}

// Close closes the open file, if there is one.
func (r *partReader) Close() error {
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}
