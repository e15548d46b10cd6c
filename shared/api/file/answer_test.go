package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/bundle"
	"ferry/shared/files"
)

// remote reads an object of a store that is not on this machine, where reading again
// costs another call.
type remote struct {
	io.Reader
	t    *testing.T
	size int64
	read bool
}

func (r *remote) Read(p []byte) (int, error) {
	r.read = true
	return r.Reader.Read(p)
}

func (r *remote) Seek(_ int64, whence int) (int64, error) {
	if r.read {
		r.t.Error("the object is read again")
	}
	if whence == io.SeekEnd {
		return r.size, nil
	}
	return 0, nil
}

func TestRemoteObjectIsReadOnceAndVerified(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 5, 100_000, verifiedFirst, verifiedFirst + 1} {
		text := bytes.Repeat([]byte("x"), int(size))
		for what, k := range map[string]struct {
			body io.Reader
			good bool
		}{
			"the right bytes": {bytes.NewReader(text), true},
			"a read that fails": {io.MultiReader(
				strings.NewReader("xxx"),
				iotest.ErrReader(errors.New("broken")),
			), size == 0},
			"an object that is cut":    {strings.NewReader("xxx"), size == 0},
			"an object that was wrong": {bytes.NewReader(bytes.Repeat([]byte("y"), int(size))), size == 0},
		} {
			w, body := httptest.NewRecorder(), &remote{Reader: k.body, t: t, size: size}
			w.Header().Set("Content-Type", "text/plain") // so that none is guessed from the bytes
			sum := binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(text))
			sent := &answer{
				ResponseWriter: w,
				get:            true,
				content: content{
					file:   files.File{Length: size},
					sum:    sum,
					newSum: newCRC64,
					wrong:  files.ErrLost,
					body:   body,
				},
			}
			http.ServeContent(sent, httptest.NewRequest("GET", "/", nil), "", time.Time{}, body)
			err := sent.fault()
			if k.good != (err == nil) || k.good != bytes.Equal(w.Body.Bytes(), text) {
				t.Errorf("%d bytes, %s: sent %d, %v", size, what, w.Body.Len(), err)
			}
			if !k.good && size <= verifiedFirst && w.Body.Len() > 0 {
				t.Errorf("%d bytes, %s: %d bytes were sent before they were verified", size, what, w.Body.Len())
			}
		}
	}
}

func TestOneOfManyReadsADirectoryThatAllAskFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const visitors = 20
		var known layouts
		var reads, failed, good int
		gone, begin := errors.New("the visitor has gone"), make(chan bool)
		read := func() (*bundle.Layout, error) {
			reads++ // one at a time
			if <-begin {
				return nil, gone
			}
			return &bundle.Layout{}, nil
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		for range visitors {
			all.Go(func() {
				layout, err := known.parse("blob", read)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, gone) {
					failed++
				} else if layout != nil && err == nil {
					good++
				}
			})
		}
		for _, leaves := range []bool{true, true, false} {
			synctest.Wait() // one reads, all others wait
			begin <- leaves
		}
		all.Wait()
		if _, err := known.parse("blob", read); err != nil {
			t.Error(err)
		}
		if reads != 3 || failed != 2 || good != visitors-2 {
			t.Errorf("%d reads, %d visitors have an error and %d the layout", reads, failed, good)
		}
	})
}
