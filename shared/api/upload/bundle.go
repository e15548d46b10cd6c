package upload

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"time"

	"ferry/shared/bundle"
	"ferry/shared/fault"
	"ferry/shared/files"
)

// maxBundled is the longest file in a form that becomes a bundle, in bytes: each is held in memory.
const maxBundled = 4 << 20

// packer reads the files of a form as one bundle, which it makes on the way.
type packer struct {
	form    *form
	written time.Time // of all files, as a form states no times
	writer  *bundle.Writer
	ready   bytes.Buffer // what was made and not yet read
	entries int
	err     error
}

// pack returns the bundle of a form.
func pack(f *form, name string, now time.Time) *files.Part {
	p := &packer{form: f, written: now}
	p.writer = bundle.NewWriter(&p.ready)
	f.most, f.bundle = bundle.MaxEntries+maxParts, true
	return &files.Part{Name: name, Type: files.BundleType, Body: p, Size: -1, Entries: func() int { return p.entries }}
}

// Read implements io.Reader.
func (p *packer) Read(b []byte) (int, error) {
	for p.ready.Len() == 0 && p.err == nil {
		p.err = p.pack()
	}
	if p.ready.Len() > 0 {
		return p.ready.Read(b)
	}
	return 0, p.err
}

// pack makes the next piece of the bundle. After the last it returns io.EOF.
func (p *packer) pack() error {
	part, err := p.form.next()
	if err != nil {
		return err
	}
	if part == nil {
		if err := p.writer.Close(); err != nil {
			return files.BundleFault(err)
		}
		return io.EOF
	}
	content, err := io.ReadAll(io.LimitReader(part.Body, maxBundled+1))
	switch {
	case err != nil:
		return bodyError(err)
	case len(content) > maxBundled:
		return fault.New(fault.TooLarge, "%.100q has more than %d bytes: send such files as a bundle in a session, as ferry up does", part.Name, maxBundled)
	case part.SHA256 != nil && sha256.Sum256(content) != [sha256.Size]byte(part.SHA256):
		return fault.New(fault.Invalid, "the SHA-256 of %.100q is not the one that its part states", part.Name)
	}
	p.entries++
	return files.BundleFault(p.writer.Add(bundle.Entry{Path: part.Name, Modified: p.written}, content))
}

// bundledName returns the path of a file in a bundle, which has folders. The bundle refuses what is
// no clean path.
func bundledName(raw string) string {
	return strings.TrimPrefix(unescape(raw), "./")
}
