package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

// kind is a kind of upload: in one call, in parts kept in memory, or in parts sent as they come in.
type kind struct {
	size, announced int
	parts           int64
}

func kinds() map[string]kind {
	return map[string]kind{
		"nothing":           {parts: 10_000},
		"one-byte":          {size: 1, announced: 1, parts: 10_000},
		"one-call":          {size: 8 * mib, announced: 8 * mib, parts: 10_000},
		"parts":             {size: 9 * mib, announced: 9 * mib, parts: 10_000},
		"unannounced":       {size: 10*mib + 1, announced: -1, parts: 10_000},
		"streamed":          {size: 11 * mib, announced: 11 * mib, parts: 2},
		"streamed-unevenly": {size: 15*mib + 1, announced: 15*mib + 1, parts: 3},
	}
}

func TestFailedUploadsLeaveNothing(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t, overTLS(t))
	cut := errors.New("line cut")
	for name, kind := range kinds() {
		if kind.size == 0 {
			continue
		}
		failures := map[string]struct {
			r    func(context.CancelFunc, []byte) io.Reader
			want error
		}{
			"too-long": {func(_ context.CancelFunc, data []byte) io.Reader {
				return stream(append(data, 1))
			}, blob.ErrLength},
			"reader": {func(_ context.CancelFunc, data []byte) io.Reader {
				return io.MultiReader(stream(data[:len(data)-1]), failing{func() error { return cut }})
			}, cut},
			"canceled": {func(cancel context.CancelFunc, data []byte) io.Reader {
				return io.MultiReader(stream(data[:len(data)/2]), failing{func() error {
					cancel()
					return nil
				}}, stream(data[len(data)/2:]))
			}, context.Canceled},
		}
		for how, failure := range failures {
			if kind.announced < 0 && failure.want == blob.ErrLength {
				continue
			}
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store, key := New(client, buckets), "o/"+name+"-"+how
				store.sizes.parts = kind.parts
				_, err := store.Create(
					ctx,
					blob.Files,
					key,
					failure.r(cancel, content(t, kind.size)),
					int64(kind.announced),
				)
				expect.Err(t, how, err, failure.want)
				wantNothing(t, store, key)
			})
		}
	}
}

// lossy loses an answer to a request that makes an object, as often as lose says.
func lossy(lose *atomic.Int64) *spoiler {
	return &spoiler{after: func(req *http.Request, resp *http.Response) (*http.Response, error) {
		query := req.URL.Query()
		final := req.Method == http.MethodPost && query.Has("uploadId") ||
			req.Method == http.MethodPut && !query.Has("uploadId")
		if final && strings.Contains(req.URL.Path, "/o/") && lose.Add(-1) >= 0 {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return resp, nil
	}}
}

// TestUploadsOfAllKindsArriveOverTLS even if the answer to the last request is lost.
func TestUploadsOfAllKindsArriveOverTLS(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		for _, losses := range []int64{0, 1} {
			if losses > 0 && (name == "streamed-unevenly" || name == "parts") {
				continue // slow, and similar to others
			}
			t.Run(fmt.Sprint(name, ", lost answers: ", losses), func(t *testing.T) {
				t.Parallel()
				var lose atomic.Int64
				client, buckets := connect(t, overTLS(t), lossy(&lose).use)
				store, data := New(client, buckets), content(t, kind.size)
				store.sizes.parts = kind.parts
				lose.Store(losses)
				got, err := store.Create(t.Context(), blob.Files, "o/k", stream(data), int64(kind.announced))
				must(t, err)
				if want := (blob.Written{Size: int64(kind.size), CRC64NVME: crc64nvme.Checksum(data)}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if lose.Load() > 0 {
					t.Error("no answer was lost")
				}
				wantContent(t, store, blob.Files, "o/k", data)
				lose.Store(losses)
				_, err = store.Create(t.Context(), blob.Files, "o/k", stream(data), int64(kind.announced))
				expect.Err(t, "creating it again", err, blob.ErrExists)
				wantContent(t, store, blob.Files, "o/k", data)
			})
		}
	}
}

// failing is a reader that calls a function and returns its error, or EOF if
// there is none.
type failing struct{ call func() error }

func (f failing) Read([]byte) (int, error) {
	if err := f.call(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// spoiler is an HTTP client with which a test can spoil requests and answers.
type spoiler struct {
	next   *http.Client
	before func(*http.Request)
	after  func(*http.Request, *http.Response) (*http.Response, error)
}

func (w *spoiler) Do(req *http.Request) (*http.Response, error) {
	if w.before != nil {
		w.before(req)
	}
	resp, err := w.next.Do(req)
	if err != nil || w.after == nil {
		return resp, err
	}
	return w.after(req, resp)
}

func (w *spoiler) use(o *s3.Options) {
	w.next = http.DefaultClient
	if client, ok := o.HTTPClient.(*http.Client); ok {
		w.next = client
	}
	o.HTTPClient = w
}

func TestBytesChangedOnTheWayAreRefused(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		if kind.size == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spoiling := &spoiler{before: func(req *http.Request) {
				if req.Method == http.MethodPut && req.Body != nil && strings.Contains(req.URL.Path, "/o/") {
					req.Body = &spoiled{ReadCloser: req.Body}
				}
			}}
			client, buckets := connect(t, overTLS(t), spoiling.use)
			store, key := New(client, buckets), "o/"+name
			store.sizes.parts = kind.parts
			data := bytes.Repeat([]byte("payload "), kind.size/8+1)[:kind.size]
			if _, err := store.Create(t.Context(), blob.Files, key, stream(data), int64(kind.announced)); err == nil {
				t.Error("got no error")
			}
			wantNothing(t, store, key)
		})
	}
}

// spoiled replaces every letter p, which only the payload has, and so leaves the
// chunks' frames intact.
type spoiled struct{ io.ReadCloser }

func (s *spoiled) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], []byte("p"), []byte("q")))
	return n, err
}

func TestAnObjectTooLargeForS3IsRefusedUnread(t *testing.T) {
	t.Parallel()
	store := New(s3.New(s3.Options{Region: "us-east-1"}), Buckets{blob.Files: "f", blob.Backup: "b"})
	unread := failing{func() error { t.Error("the reader was read"); return nil }}
	if _, err := store.Create(t.Context(), blob.Files, "o/k", unread, 10_000*(5<<30)+1); err == nil {
		t.Error("got no error")
	}
}

func TestSweepRemovesOldUnfinishedUploadsInBothAreas(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t)
	store := New(client, buckets)
	for _, bucket := range buckets {
		for i := range 3 {
			at := location{bucket, fmt.Sprintf("o/k%d", i)}
			must(t, failure(store.begin(t.Context(), at, "", nil)))
		}
	}
	for _, k := range []struct {
		late time.Duration
		want int
	}{{-time.Hour, 0}, {time.Hour, 6}, {time.Hour, 0}} {
		n, err := store.Sweep(t.Context(), time.Now().Add(blob.PartsLife+k.late), nil)
		if n != k.want || err != nil {
			t.Errorf("sweeping %s after their life: removed %d, %v; want %d", k.late, n, err, k.want)
		}
	}
}
