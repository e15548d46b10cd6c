package client

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// sending is the body of a part under way. The transport may read it for a
// moment after a response; what is counted then is taken back too.
type sending struct {
	r        io.Reader
	watch    *watched
	progress func(int64)
	size     int64
	wait     time.Duration // for the answer, after the last byte

	mu    sync.Mutex
	sent  int64
	ended bool  // no more is counted
	err   error // of reading, here
}

func (s *sending) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return n, err
	}
	s.sent += int64(n)
	s.progress(int64(n))
	if err == io.EOF && s.sent < s.size {
		s.err = fmt.Errorf("%w: it has become shorter", ErrChanged)
	} else if err != nil && err != io.EOF {
		s.err = err
	}
	if s.sent < s.size {
		s.watch.moved(s.watch.idle)
	} else {
		s.watch.moved(s.wait)
	}
	return n, err
}

// Close is for the transport.
func (s *sending) Close() error { return nil }

// taken ends the counting and returns what was counted.
func (s *sending) taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.sent
}

// failed is the error of reading.
func (s *sending) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
