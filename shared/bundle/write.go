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

// Close writes the directory. It does not close the underlying writer. Without any entry it
// returns an *Error.
func (w *Writer) Close() error {
	rest, err := w.Directory()
	if err == nil {
		_, err = io.Copy(w.out, rest)
	}
	return err
}

// Directory returns what Close would write. It is made while it is read, so it takes no memory. After
// that, Add must not be called.
func (w *Writer) Directory() (io.Reader, error) {
	if err := w.layout.finish(); err != nil {
		return nil, err
	}
	return &tail{layout: &w.layout}, nil
}

// tail reads the directory of a layout and what follows it.
type tail struct {
	layout *Layout
	next   int    // record
	rest   []byte // of the record before
}

// Read implements io.Reader. It reads a record at a time.
func (d *tail) Read(b []byte) (int, error) {
	for len(d.rest) == 0 {
		switch all := d.layout.Entries; {
		case d.next < len(all):
			d.rest = all[d.next].record()
		case d.next == len(all):
			d.rest = d.layout.end()
		default:
			return 0, io.EOF
		}
		d.next++
	}
	n := copy(b, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// tail returns the directory and what follows it. All checksums must be known.
func (l *Layout) tail() []byte {
	b, _ := io.ReadAll(&tail{layout: l}) // which does not fail
	return b
}
