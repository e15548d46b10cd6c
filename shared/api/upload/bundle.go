package upload

import (
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"time"

	"ferry/shared/bundle"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/wire"
)

const (
	// maxBundled is the longest file in a form that becomes a bundle, in bytes: each is held in memory.
	maxBundled = 4 << 20
	// bundlePlaces is how many slots such a form takes, each for 512 KiB of memory.
	bundlePlaces = 12
	// formMemory is how many bytes of that its names and one file may take. The rest is for two
	// buffers.
	formMemory = bundlePlaces*512<<10 - 2*readAhead
	// entryMemory is how many bytes of memory an entry takes besides those of its path.
	entryMemory = 100
)

// packer reads the files of a form as one bundle, which it makes as it reads.
type packer struct {
	form    *form
	written time.Time // of all files, as a form states no times
	writer  *bundle.Writer
	content []byte    // for one file after the other
	ready   pieces    // what was made but not yet read
	rest    io.Reader // the directory, after the last file
	has     files.Contents
	names   int // how much memory the entries take, in bytes
	err     error
}

// pieces keeps what is written without a copy: the bytes do not change until they are read.
type pieces struct{ net.Buffers }

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	p.Buffers = append(p.Buffers, b)
	return len(b), nil
}

// pack returns the bundle of a form. length is the length of the form's body in bytes, or -1 if
// that is unknown.
func pack(f *form, name string, now time.Time, length int64) *files.Part {
	p := &packer{form: f, written: now}
	p.content = make([]byte, 1+min(uint64(length), maxBundled)) // -1 counts as a large one
	p.writer = bundle.NewWriter(&p.ready)
	f.most, f.bundle = bundle.MaxEntries+maxParts, true
	return &files.Part{Name: name, Type: files.BundleType, Body: p, Size: -1, Contents: &p.has}
}

// Read implements io.Reader.
func (p *packer) Read(b []byte) (int, error) {
	for p.err == nil {
		if n, _ := p.ready.Read(b); n > 0 {
			return n, nil
		}
		if p.rest != nil {
			return p.rest.Read(b)
		}
		p.err = p.pack()
	}
	return 0, p.err
}

// pack makes the next piece of the bundle.
func (p *packer) pack() error {
	part, err := p.form.next()
	if err != nil {
		return err
	}
	if part == nil {
		p.rest, err = p.writer.Directory()
		return files.BundleFault(err)
	}
	for p.names+len(p.content) > formMemory {
		p.content = make([]byte, 1+len(p.content)/2)
	}
	length := 0
	for length < len(p.content) && err == nil {
		var n int
		n, err = part.Body.Read(p.content[length:])
		length += n
	}
	content := p.content[:length]
	switch {
	case length == len(p.content):
		return fault.New(
			fault.TooLarge, "%.100q has more than %d bytes: send such files as a bundle in a session, as ferry up does", part.Name, len(p.content)-1,
		)
	case err != io.EOF:
		return bodyError(err)
	case part.SHA256 != nil && sha256.Sum256(content) != [sha256.Size]byte(part.SHA256):
		return fault.New(
			fault.Invalid, "the SHA-256 of %.100q differs from the one that its part states", part.Name,
		)
	}
	p.names += entryMemory + len(part.Name)
	path := strings.Clone(part.Name) // the name may be a piece of a longer header
	p.has.Add(path)
	return files.BundleFault(p.writer.Add(bundle.Entry{
		Path:     path,
		Modified: p.written,
	}, content))
}

// bundledName returns the path of a file in a bundle, which may have folders. The bundle refuses a
// path that is not clean.
func bundledName(raw string) string {
	return strings.TrimPrefix(escapes.Replace(wire.UTF8(raw)), "./")
}
