package disk

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"ferry/shared/blob"
)

const (
	// maxKnown is the most files that are known, and knownFor is how long each is.
	maxKnown = 100_000
	knownFor = 24 * time.Hour
)

// known has the marks of files whose bytes are known, and when they were last compared, in Unix seconds. It
// takes less than 64 bytes a file.
type known struct {
	mu sync.Mutex
	at map[blob.Mark]int64
}

// Known implements blob.Knower. The mark is a digest of the checksum and of all that changes with the
// bytes of a file: another file, or a changed one, has another mark.
func (s *Store) Known(r io.Reader, sum uint64) (mark blob.Mark, known bool) {
	f, ok := r.(*os.File)
	if !ok {
		return mark, false
	}
	state := state(f)
	if state == "" {
		return mark, false
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%x %s", sum, state))
	copy(mark[:], digest[:])
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	at, known := s.known.at[mark]
	age := s.now().Sub(time.Unix(at, 0))
	return mark, known && age >= 0 && age < knownFor
}

// Know implements blob.Knower. If too many files are known, any of them is forgotten.
func (s *Store) Know(mark blob.Mark) {
	if mark == (blob.Mark{}) {
		return
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	if s.known.at == nil {
		s.known.at = map[blob.Mark]int64{}
	}
	for other := range s.known.at {
		if len(s.known.at) < maxKnown {
			break
		}
		delete(s.known.at, other)
	}
	s.known.at[mark] = s.now().Unix()
}
