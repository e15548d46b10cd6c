package disk

import (
	"errors"
	"os"
	"syscall"
)

const (
	// directSize is how much of a part is written at once past the system's
	// cache: smaller pieces spend more time between them than in them.
	directSize = 1 << 20
	// directAlign is what such a write must be a multiple of, in memory, in
	// length and in the file.
	directAlign = 4096
	// directWriters bounds the memory of those buffers, to 16 MiB.
	directWriters = 16
)

// directBuffers lends the buffers of writes past the cache. Go begins large
// ones at a page; were it not so, the system would refuse the write, and it
// went through the cache.
type directBuffers chan struct{}

// take returns nil when all are lent: who comes then writes through the cache.
func (d directBuffers) take() (buf []byte, release func()) {
	select {
	case d <- struct{}{}:
		return make([]byte, directSize), func() { <-d }
	default:
		return nil, nil
	}
}

// dataFile is where the bytes of a part go: past the cache as far as they are
// aligned. A large file would only push what others read out of the cache, and
// its way through it costs more than half of the time.
type dataFile struct {
	*os.File
	direct *os.File // nil if the file system has no such way
}

// WriteAt implements io.WriterAt.
func (f *dataFile) WriteAt(b []byte, at int64) (int, error) {
	n := 0
	if aligned := len(b) &^ (directAlign - 1); f.direct != nil && at%directAlign == 0 && aligned > 0 {
		_, err := f.direct.WriteAt(b[:aligned], at)
		switch {
		case err == nil:
			n = aligned
		case errors.Is(err, syscall.EINVAL):
			f.leaveDirect()
		default:
			return 0, err
		}
	}
	if n == len(b) {
		return n, nil
	}
	m, err := f.File.WriteAt(b[n:], at+int64(n))
	return n + m, err
}

func (f *dataFile) leaveDirect() {
	if f.direct != nil {
		f.direct.Close()
		f.direct = nil
	}
}

// Close closes both.
func (f *dataFile) Close() error {
	f.leaveDirect()
	return f.File.Close()
}
