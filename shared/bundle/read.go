package bundle

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"
)

// tailLength is how many bytes Read reads first: enough for the directories of most bundles.
const tailLength = 64 << 10

// Source returns a reader of n bytes of an archive from the offset off, also in bytes. n is at
// least 1, and the range lies within the archive.
type Source func(ctx context.Context, off, n int64) (io.ReadCloser, error)

// Read reads the directory of an archive of size bytes, in one or two ranged reads, and checks that
// the archive is a bundle: to the byte, its directory must be the one that its entries imply. Read
// sees neither the local headers, which Entry.Agrees checks, nor the bytes of the files.
//
// If the archive is not a bundle, the error is an *Error. Errors of reading are wrapped. Memory is
// bounded by a few times MaxDirectory, whatever the archive claims.
func Read(ctx context.Context, source Source, size int64) (*Layout, error) {
	if size < endLength {
		return nil, notZIP()
	}
	n := min(size, tailLength)
	tail, err := readRange(ctx, source, size-n, n)
	if err != nil {
		return nil, err
	}
	end, err := parseEnd(tail, size)
	if err != nil {
		return nil, err
	}
	if missing := size - n - end.directory; missing > 0 {
		before, err := readRange(ctx, source, end.directory, missing)
		if err != nil {
			return nil, err
		}
		tail = append(before, tail...)
	}
	return parseTail(tail[int64(len(tail))-(size-end.directory):], end)
}

func notZIP() error {
	return &Error{Reason: "is not a ZIP archive, or something follows the archive"}
}

func readRange(ctx context.Context, source Source, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	r, err := source(ctx, off, n)
	if err == nil {
		defer r.Close()
		_, err = io.ReadFull(r, b)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the directory: %w", err)
	}
	return b, nil
}

// ending is what the end records say.
type ending struct {
	entries         int
	directory, size int64 // offset and length of the directory
}

// parseEnd finds the directory, from the last bytes of an archive. It only bounds the values;
// parseTail checks them.
func parseEnd(tail []byte, size int64) (ending, error) {
	b := tail[len(tail)-endLength:]
	if binary.LittleEndian.Uint32(b) != endSignature {
		return ending{}, notZIP()
	}
	after := int64(endLength)
	if binary.LittleEndian.Uint32(b[16:]) == wide {
		after += end64Length + locatorLength
	}
	e := ending{
		entries: int(binary.LittleEndian.Uint16(b[10:])),
		size:    int64(binary.LittleEndian.Uint32(b[12:])),
	}
	e.directory = size - after - e.size
	switch {
	case e.entries > MaxEntries:
		return ending{}, &Error{Reason: fmt.Sprintf("has more than %d entries", MaxEntries)}
	case e.size > MaxDirectory:
		return ending{}, &Error{Reason: fmt.Sprintf("has a directory of more than %d MiB",
			MaxDirectory>>20)}
	case e.directory < 0:
		return ending{}, &Error{Reason: "is shorter than its directory"}
	}
	return e, nil
}

// parseTail parses the directory and compares it and the records after it with those that its
// entries imply.
func parseTail(tail []byte, end ending) (*Layout, error) {
	l := &Layout{}
	rest := tail[:end.size]
	for range end.entries {
		record, err := cutRecord(rest)
		if err != nil {
			return nil, err
		}
		if err := l.add(parseRecord(record)); err != nil {
			return nil, err
		}
		last := l.Entries[len(l.Entries)-1]
		if want := last.record(); !bytes.Equal(record, want) {
			return nil, &Error{last.Path, difference(record, want)}
		}
		rest = rest[len(record):]
	}
	if len(rest) > 0 {
		return nil, &Error{Reason: "has a directory with more than its entries"}
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	if l.Directory != end.directory {
		return nil, &Error{l.Entries[len(l.Entries)-1].Path, "is the last entry, but the directory does not follow it"}
	}
	if !bytes.Equal(tail[end.size:], l.end()) {
		return nil, &Error{Reason: "has end records that are not those of a bundle, such as a comment or several disks"}
	}
	return l, nil
}

// cutRecord returns the first record of a directory. It has the length that it claims.
func cutRecord(directory []byte) ([]byte, error) {
	if len(directory) < recordLength ||
		binary.LittleEndian.Uint32(directory) != recordSignature {
		return nil, &Error{Reason: "has fewer entries in its directory than it claims"}
	}
	n := recordLength
	for _, at := range []int{28, 30, 32} { // path, extra fields, comment
		n += int(binary.LittleEndian.Uint16(directory[at:]))
	}
	if n > len(directory) {
		return nil, &Error{Reason: "has an entry that is longer than the directory"}
	}
	return directory[:n], nil
}

// parseRecord returns what a record says about its entry. It checks nothing: the caller makes the
// record again from the result, and compares.
func parseRecord(b []byte) Entry {
	n := recordLength + int(binary.LittleEndian.Uint16(b[28:]))
	path, extra := b[recordLength:n], b[n:]
	e := Entry{
		Path:       string(path),
		Length:     int64(binary.LittleEndian.Uint32(b[24:])),
		Executable: binary.LittleEndian.Uint32(b[38:]) == executableMode<<16,
		CRC32:      binary.LittleEndian.Uint32(b[16:]),
	}
	if len(extra) >= timeLength {
		e.Modified = time.Unix(int64(binary.LittleEndian.Uint32(extra[5:])), 0)
	}
	if at := timeLength + 4; e.Length == wide && len(extra) >= at+8 {
		e.Length = int64(min(binary.LittleEndian.Uint64(extra[at:]), math.MaxInt64)) // Layout.add refuses that one
	}
	return e
}

// difference says why a record is not the wanted one.
func difference(record, want []byte) string {
	differs := func(from, to int) bool { return !bytes.Equal(record[from:to], want[from:to]) }
	switch {
	case differs(10, 12):
		return "is compressed; a bundle's files are stored"
	case differs(8, 10):
		return "has other flags than that of a UTF-8 name, such as those of encryption or a data descriptor"
	case differs(20, 24):
		return "has two different lengths"
	case differs(32, 34):
		return "has a comment"
	case differs(38, 42):
		return "is neither a file of mode 0644 or 0755 nor a folder of mode 0755"
	case differs(42, 46):
		return "does not begin where the entry before it ends"
	case differs(28, 32) || differs(recordLength, min(len(record), len(want))):
		return "has other extra fields than those of a bundle"
	case differs(12, 16):
		return "has two different times"
	}
	return "has a record in the directory that is not that of a bundle"
}

// Agrees compares the local header in an archive, all bytes from Header to Offset, with the one
// that the directory implies. A difference is an *Error.
func (e Entry) Agrees(header []byte) error {
	if !bytes.Equal(header, e.local()) {
		return &Error{e.Path, "has a local header that does not agree with the directory"}
	}
	return nil
}
