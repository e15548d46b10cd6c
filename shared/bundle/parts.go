package bundle

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"sync"

	"ferry/shared/wire"
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
// ahead. If a file changes later, reading it fails with ErrChanged, so what was sent always
// agrees.
type Parts struct {
	layout *Layout
	size   int64
	open   func(entry int) (File, error)

	mu   sync.Mutex
	sums map[share]uint32
}

// chunkSize is how many bytes of a file are in memory at a time. shortFile is the length in bytes of
// a file that is in memory while its header is sent.
const chunkSize, shortFile = 256 << 10, 64 << 10

// share stands for the bytes of a file that are in one part.
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
	slices.Reverse(headers) // a part may also have the end of the file before
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

// kind says what a piece is a range of.
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
	next, stop := iter.Pull2(p.chunks(ctx, number))
	return &partReader{next: next, stop: stop}
}

// errUnwanted ends a part that nobody reads to its end.
var errUnwanted = errors.New("the part is not wanted any more")

// chunks yields the bytes of a part. An error ends it.
func (p *Parts) chunks(ctx context.Context, number int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		take := func(chunk []byte) error {
			if !yield(chunk, nil) {
				return errUnwanted
			}
			return context.Cause(ctx)
		}
		err := context.Cause(ctx)
		pieces := p.pieces(number)
		var short []byte // the file after a header
		for i, c := range pieces {
			var whole []byte
			if err == nil && i+1 < len(pieces) && c.kind == header && p.isShort(pieces[i+1]) {
				short, err = p.short(ctx, number, pieces[i+1])
			}
			switch {
			case err != nil:
			case c.kind == content && short != nil:
				err = take(short)
				short = nil
			case c.kind == content:
				err = p.content(ctx, number, c, take)
			default:
				if whole, err = p.bytes(ctx, c); err == nil {
					err = take(whole[c.off : c.off+c.length])
				}
			}
		}
		if err != nil && err != errUnwanted {
			yield(nil, err)
		}
	}
}

// isShort reports whether a piece is a whole file that is opened once for both its header, which
// needs its checksum, and its bytes.
func (p *Parts) isShort(c piece) bool {
	return c.kind == content &&
		c.length <= shortFile &&
		c.length == p.layout.Entries[c.entry].Length
}

// short returns the bytes of a short file, which are a single chunk.
func (p *Parts) short(ctx context.Context, number int, c piece) (text []byte, err error) {
	err = p.content(ctx, number, c, func(chunk []byte) error {
		text = chunk
		return context.Cause(ctx)
	})
	return text, err
}

// content passes a part's share of a file to take, in chunks. It remembers the share's checksum
// before it passes the last chunk, and withholds that chunk if the share has changed.
func (p *Parts) content(
	ctx context.Context,
	number int,
	c piece,
	take func([]byte) error,
) error {
	failed := func(err error) error {
		return fmt.Errorf("reading %q: %w", p.layout.Entries[c.entry].Path, err)
	}
	file, err := p.open(c.entry)
	if err != nil {
		return failed(err)
	}
	closed := sync.OnceValue(file.Close)
	defer closed()
	sum, buf := crc32.NewIEEE(), make([]byte, min(c.length, chunkSize))
	for done := int64(0); done < c.length; {
		chunk := buf[:min(c.length-done, chunkSize)]
		n, err := file.ReadAt(chunk, c.off+done)
		switch {
		case n == len(chunk) && (err == nil || err == io.EOF):
		case err == io.EOF: // it is shorter now
			return p.changed(c)
		default:
			return failed(err)
		}
		_, _ = sum.Write(chunk) // never fails
		done += int64(n)
		if done == c.length {
			if err := closed(); err != nil {
				return failed(err)
			}
			if err := p.remember(number, c, sum.Sum32()); err != nil {
				return err
			}
		}
		if err := take(chunk); err != nil {
			return err
		}
	}
	return nil
}

// checksum returns the CRC-32 of a file. It reads the shares whose checksum is not known.
func (p *Parts) checksum(ctx context.Context, entry int) (sum uint32, err error) {
	e := p.layout.Entries[entry]
	for from := e.Offset; from < e.Offset+e.Length; {
		number := int(from/p.size) + 1
		to := min(p.endOf(number), e.Offset+e.Length)
		next, known := p.known(number, entry)
		if !known {
			unread := func([]byte) error { return context.Cause(ctx) }
			err := p.content(ctx, number, piece{
				content, entry, from - e.Offset, to - from,
			}, unread)
			if err != nil {
				return 0, err
			}
			next, _ = p.known(number, entry)
		}
		sum, from = wire.CombineCRC32(sum, next, to-from), to
	}
	return sum, nil
}

// known returns the checksum of a part's share of a file, if it was read before.
func (p *Parts) known(number, entry int) (sum uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum, ok = p.sums[share{entry, number}]
	return sum, ok
}

// remember keeps the checksum of a part's share of a file. It fails if another one is known.
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

// bytes returns the whole header, or the whole directory, that a piece is a range of.
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

// partReader reads chunks one after the other.
type partReader struct {
	next func() ([]byte, error, bool)
	stop func()
	rest []byte // of the current chunk
	err  error  // what ended reading
}

// Read fills b: a chunk may have only a few bytes, and each write to a connection costs the same.
func (r *partReader) Read(b []byte) (n int, err error) {
	for n < len(b) && r.err == nil {
		if len(r.rest) == 0 {
			var more bool
			r.rest, r.err, more = r.next()
			if !more {
				r.err = io.EOF
			}
			continue
		}
		more := copy(b[n:], r.rest)
		n, r.rest = n+more, r.rest[more:]
	}
	if n > 0 {
		return n, nil // the next call returns the error
	}
	return 0, r.err
}

// Close closes the open file, if there is one. It never fails.
func (r *partReader) Close() error {
	r.stop()
	return nil
}
