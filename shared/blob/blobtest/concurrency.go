package blobtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"ferry/shared/blob"
)

func concurrencyTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"of many creates of one key exactly one wins, whole": oneCreateWins,
		"64 creates at once all arrive as they were sent":    parallelCreates,
		"creates and deletes for one owner do not collide":   createsAndDeletes,
	}
}

// together runs f in many goroutines at once and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func oneCreateWins(t *testing.T, s suite) {
	for _, size := range []int{1000, 6 * mib} {
		key := s.key(fmt.Sprint("k", size))
		contents := make([][]byte, 4)
		for i := range contents {
			contents[i] = content(t, size+i)
		}
		var wins, winner atomic.Int64
		together(len(contents), func(i int) {
			_, err := s.Create(t.Context(), blob.Files, key, reader(contents[i]), int64(size+i))
			switch {
			case err == nil:
				wins.Add(1)
				winner.Store(int64(i))
			case !errors.Is(err, blob.ErrExists):
				t.Errorf("got error %v, want none or ErrExists", err)
			}
		})
		if wins.Load() != 1 {
			t.Errorf("%d creates won, want 1", wins.Load())
		}
		s.wantContent(blob.Files, key, contents[winner.Load()])
	}
}

func parallelCreates(t *testing.T, s suite) {
	var sums [64][32]byte
	together(len(sums), func(i int) {
		data := content(t, 1000*i+i)
		sums[i] = sha256.Sum256(data)
		written, err := s.Create(t.Context(), areas()[i%2], s.key(fmt.Sprint("k", i)), reader(data), int64(len(data)))
		if err != nil || written.CRC64NVME != crc(data) || written.Size != int64(len(data)) {
			t.Errorf("create %d: got %+v and error %v", i, written, err)
		}
	})
	together(len(sums), func(i int) {
		r, err := s.Open(t.Context(), areas()[i%2], s.key(fmt.Sprint("k", i)))
		if err != nil {
			t.Errorf("open %d: %v", i, err)
			return
		}
		defer r.Close()
		h := sha256.New()
		if _, err := io.Copy(h, r); err != nil || !bytes.Equal(h.Sum(nil), sums[i][:]) {
			t.Errorf("object %d holds other bytes, or error %v", i, err)
		}
	})
}

// createsAndDeletes empties and fills owners all the time, so that a store
// which removes empty folders does it while others create in them.
func createsAndDeletes(t *testing.T, s suite) {
	together(8, func(i int) {
		key := fmt.Sprintf("%s-%d/k%d", s.owner, i%2, i)
		for range 20 {
			if _, err := s.Create(t.Context(), blob.Files, key, reader([]byte(key)), int64(len(key))); err != nil {
				t.Errorf("creating: %v", err)
				return
			}
			if err := s.Delete(t.Context(), blob.Files, key); err != nil {
				t.Errorf("deleting: %v", err)
				return
			}
		}
	})
	if own := s.list(blob.Files); len(own) != 0 {
		t.Errorf("got %+v, want nothing", own)
	}
}
