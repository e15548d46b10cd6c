package disk

import (
	"errors"
	"os"
	"syscall"
)

const (
	// directSize is the size of one write that bypasses the system's cache. With smaller ones,
	// more time is spent between writes than in them.
	directSize = 1 << 20
	// directAlign must divide such a write's length and its offsets in memory and in the file.
	directAlign = 4096
	// directWriters bounds the memory of these buffers to 16 MiB.
	directWriters = 16
)

// directBuffers lends buffers for writes that bypass the cache. Go allocates large buffers at
// page boundaries. If one were not aligned, the system would refuse the write, which would then
// go through the cache.
type directBuffers chan struct{}

// take returns nil when all buffers are lent. The caller then writes through the
// cache.
func (d directBuffers) take() (buf []byte, release func()) {
	select {
	case d <- struct{}{}:
		return make([]byte, directSize), func() { <-d }
	default:
		return nil, nil
	}
}

// dataFile writes the bytes of a part, bypassing the cache as far as they are aligned. In the
// cache a large file would only displace what others read, and going through it takes more than
// half of the time.
type dataFile struct {
	*os.File
	direct *os.File // nil if the file system does not support it
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
			f.direct.Close()
			f.direct = nil
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

// Close implements io.Closer.
func (f *dataFile) Close() error {
	f.direct.Close() // a nil one does nothing
	return f.File.Close()
}
