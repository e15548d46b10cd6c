package bundle

import (
	"hash/crc32"
	"io"
)

// Writer writes a bundle of files that come one after the other, each in memory. It is for one
// goroutine. After an error it must not be used.
type Writer struct {
	out    io.Writer
	layout Layout
}

// NewWriter returns a Writer to out. It does not buffer.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Add writes an entry with its bytes, which give Length and CRC32. If Plan would refuse the entry,
// Add writes nothing and returns an *Error. It returns errors of writing unchanged.
func (w *Writer) Add(e Entry, content []byte) error {
	e.Length, e.CRC32 = int64(len(content)), crc32.ChecksumIEEE(content)
	if err := w.layout.add(e); err != nil {
		return err
	}
	if _, err := w.out.Write(w.layout.Entries[len(w.layout.Entries)-1].local()); err != nil {
		return err
	}
	_, err := w.out.Write(content)
	return err
}

// Close writes the directory. It does not close the writer below. Without any entry it returns an
// *Error.
func (w *Writer) Close() error {
	if err := w.layout.finish(); err != nil {
		return err
	}
	_, err := w.out.Write(w.layout.tail())
	return err
}

// tail returns the directory and what follows it. All checksums must be known.
func (l *Layout) tail() []byte {
	b := make([]byte, 0, l.Length-l.Directory)
	for _, e := range l.Entries {
		b = append(b, e.record()...)
	}
	return append(b, l.end()...)
}
