package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
	"ferry/shared/wire"
)

// TestADownloadSurvivesCutConnections by trying again, or as further downloads resume it.
func TestADownloadSurvivesCutConnections(t *testing.T) {
	t.Parallel()
	s, up := start(t)
	content := bytesOf(1, 3<<20)
	f, err := up.Upload(t.Context(), "big", "", content, client.Delivery{})
	must(t, err)
	for _, tries := range []int{30, 1} {
		cut, dir := cutter(1<<20, 1000), t.TempDir()
		c := connect(t, s, "", func(o *client.Options) { o.HTTP, o.Retry.Tries = cut.client(), tries })
		fetch := func() (client.Fetched, error) {
			return c.Fetch(t.Context(), f.Link, client.FetchOptions{Path: dir})
		}
		got, err := fetch()
		for tries == 1 && client.IsNetwork(err) {
			got, err = fetch()
		}
		if err != nil || cut.cuts < 2 || strings.Join(got.Verified, " ") != "sha-256 crc64nvme" {
			t.Fatalf("with %d tries, after %d cuts: %+v, %v", tries, cut.cuts, got, err)
		}
		shared{T: t, content: content}.wantBytes(dir)
	}
}

// TestOtherBytesAreNeitherResumedNorOverwritten downloads where there is a part of another file, and then twice again.
func TestOtherBytesAreNeitherResumedNorOverwritten(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	dir := t.TempDir()
	one, err := c.Upload(t.Context(), "a", "", []byte("first content"), client.Delivery{})
	must(t, err)
	for name, text := range map[string]string{
		"a.part":      "other content",
		"a.part.json": `{"etag":"\"x\"","length":13,"missing":[{"From":5,"To":13}]}`,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if _, err := c.Fetch(t.Context(), one.Link, client.FetchOptions{Path: dir}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a")
	if got, _ := os.ReadFile(path); string(got) != "first content" {
		t.Errorf("%q", got)
	}
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
	for force, want := range []string{"mine", "first content"} {
		_, err := c.Fetch(t.Context(), one.Link, client.FetchOptions{Path: path, Force: force == 1})
		if got, _ := os.ReadFile(path); string(got) != want || errors.Is(err, client.ErrExists) != (force == 0) {
			t.Errorf("with force %d the file has %q, %v", force, got, err)
		}
	}
}

// TestBytesBehindALinkAreCompared: a link is enough to check what arrived, even if no
// SHA-256 is known.
func TestBytesBehindALinkAreCompared(t *testing.T) {
	t.Parallel()
	stated := wire.CRC64Text(crc64nvme.Checksum([]byte("content")))
	for text, want := range map[string]error{"content": nil, "consent": client.ErrDigest} {
		c := against(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("X-Amz-Checksum-Crc64nvme", stated)
			http.ServeContent(w, r, "a", time.Time{}, strings.NewReader(text))
		})
		dir, link := t.TempDir(), c.URL()+"/a"
		expect.Err(t, text+" into a file", failed(c.Fetch(t.Context(), link, client.FetchOptions{Path: dir})), want)
		if left, _ := os.ReadDir(dir); (len(left) > 0) != (want == nil) {
			t.Errorf("%s leaves %v", text, left)
		}
		wrong := client.FetchOptions{Path: dir, Force: true, Verify: client.Verify{CRC64NVME: wire.CRC64Text(1)}} // as the record says
		expect.Err(
			t,
			text+", of which the record says something else",
			failed(c.Fetch(t.Context(), link, wrong)),
			client.ErrDigest,
		)
		expect.Err(t, text+" into a stream", failed(c.Copy(t.Context(), link, &bytes.Buffer{}, client.Verify{})), want)
	}
}

// store answers like the service in the cloud: HEAD itself, GET with a redirect to
// a store, whose addresses expire after one use.
type store struct {
	*httptest.Server
	content  []byte
	signed   atomic.Int64
	mu       sync.Mutex
	uses     map[string]int
	requests atomic.Int64
	lost     atomic.Int64  // how many addresses, from the first on, lead to nothing
	two      chan struct{} // closed when the second request comes
	alone    atomic.Bool   // the first waited for it in vain
}

func newStore(t *testing.T, content []byte) *store {
	s := &store{content: content, uses: map[string]int{}, two: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/download/file", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("X-Request-Id", "request-1")
			w.Header().Set("Location", fmt.Sprintf("/store?signature=%d", s.signed.Add(1)))
			w.WriteHeader(http.StatusFound)
			return
		}
		sum := sha256.Sum256(content)
		w.Header().Set("ETag", `"service"`)
		w.Header().Set("Content-Disposition", `attachment; filename="../../.big"`)
		w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
	mux.HandleFunc("/store", func(w http.ResponseWriter, r *http.Request) {
		signature := r.URL.Query().Get("signature")
		if n, _ := strconv.ParseInt(signature, 10, 64); n <= s.lost.Load() {
			http.NotFound(w, r)
			return
		}
		if s.requests.Add(1) == 2 {
			close(s.two)
		}
		select { // an answer waits for the second request
		case <-s.two:
		case <-time.After(10 * time.Minute):
			s.alone.Store(true)
		}
		s.mu.Lock()
		s.uses[signature]++
		ended := s.uses[signature] > 1
		s.mu.Unlock()
		if ended || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("ETag", `"store-3"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *store) link() string { return s.URL + "/v1/download/file?k=x" }

func TestRangesAreFetchedAtOnceAndExpiredAddressesRenewed(t *testing.T) {
	t.Parallel()
	content := bytesOf(3, 50<<20)
	s := newStore(t, content)
	c := newClient(t, client.Options{URL: s.URL, User: "x", Password: "y", Retry: quick()})
	dir := t.TempDir()
	var have atomic.Int64
	got, err := c.Fetch(t.Context(), s.link(), client.FetchOptions{Path: dir, Verify: client.Verify{
		CRC64NVME: wire.CRC64Text(crc64nvme.Checksum(content)), Progress: func(n int64) { have.Add(n) },
	}})
	if err != nil || got.Path != filepath.Join(dir, "_big") || len(got.Verified) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if b, err := os.ReadFile(got.Path); err != nil || !bytes.Equal(b, content) {
		t.Errorf("the file has other bytes: %v", err)
	}
	if have.Load() != int64(len(content)) || s.signed.Load() < 3 || s.alone.Load() {
		t.Errorf("%d bytes of progress, %d addresses, one request at a time: %t",
			have.Load(), s.signed.Load(), s.alone.Load())
	}
}

// TestLostBytesAreToldAndAskedForOnce counts the requests for a file whose bytes the
// service has lost, or the store that it refers to.
func TestLostBytesAreToldAndAskedForOnce(t *testing.T) {
	t.Parallel()
	s, up := start(t)
	f, err := up.Upload(t.Context(), "a", "", []byte("content"), client.Delivery{})
	if err == nil {
		err = s.Data.Disk.Delete(t.Context(), blob.Files, s.Objects(blob.Files)[0])
	}
	must(t, err)
	small, large := newStore(t, []byte("content")), newStore(t, bytesOf(3, 20<<20))
	told := regexp.MustCompile("^the service has lost the bytes of this file; tell its operator the request id .+$")
	small.lost.Store(1 << 30)
	large.lost.Store(1 << 30)
	for link, most := range map[string]int64{f.Link: 1, small.link(): 3, large.link(): 1 + 8} {
		var count counted
		c := newClient(t, client.Options{
			URL:   s.Base,
			HTTP:  &http.Client{Transport: &count},
			Retry: client.Retry{Min: time.Hour},
		})
		_, err := c.Fetch(t.Context(), link, client.FetchOptions{Path: t.TempDir()})
		if !errors.Is(err, client.ErrLost) || !told.MatchString(err.Error()) || count.Load() > most {
			t.Errorf("after %d requests: %v", count.Load(), err)
		}
	}
}

// TestAFileThatMovesMeanwhileIsFoundAgain: its old address in the store is gone then.
func TestAFileThatMovesMeanwhileIsFoundAgain(t *testing.T) {
	t.Parallel()
	content := bytesOf(4, 20<<20)
	s := newStore(t, content)
	s.lost.Store(1)
	c := newClient(t, client.Options{URL: s.URL, Retry: quick()})
	got, err := c.Fetch(t.Context(), s.link(), client.FetchOptions{Path: t.TempDir()})
	if err != nil || got.Length != int64(len(content)) || len(got.Verified) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// counted counts the requests that it sends.
type counted struct{ atomic.Int64 }

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// TestTheLongestNamesAreDownloaded fetches files, and unpacks bundles, whose names leave no room for
// an ending. The first try of each ends before the bytes come.
func TestTheLongestNamesAreDownloaded(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	content := []byte("content")
	tr := tree{"tree/run.sh": content, "tree/été/日本語.txt": content}
	for _, length := range []int{231, 232, 241, 242, 250, 251, 254, 255} {
		for _, letter := range []string{"x", "é"} {
			name := strings.Repeat(letter, (length-4)/len(letter))
			f, err := c.Upload(
				t.Context(),
				name+".txt",
				"",
				content,
				client.Delivery{Limits: client.Limits{Downloads: 1}},
			)
			must(t, err)
			dir := t.TempDir()
			stopped, stop := context.WithCancel(t.Context())
			_, err = c.Fetch(stopped, f.Link, client.FetchOptions{
				Path:   dir,
				Verify: client.Verify{Started: func(client.Remote, int64) { stop() }},
			})
			begun, _ := os.ReadDir(dir)
			got, again := c.Fetch(t.Context(), f.Link, client.FetchOptions{Path: dir})
			left, _ := os.ReadDir(dir)
			if !errors.Is(err, context.Canceled) ||
				len(begun) != 2 ||
				again != nil ||
				got.Path != filepath.Join(dir, name+".txt") ||
				len(left) != 1 {
				t.Errorf("%d bytes: %v, %d files, then %s, %v, %d files",
					len(got.Name), err, len(begun), got.Path, again, len(left))
			}
			f, err = c.Upload(
				t.Context(),
				name+".zip",
				"",
				tr.archive(t),
				client.Delivery{Limits: client.Limits{Downloads: 1}},
			)
			must(t, err)
			dir = t.TempDir()
			_, err = c.Unpack(t.Context(), f.Link, client.UnpackOptions{Path: dir})
			must(t, err)
			tr.wantIn(t, dir)
		}
	}
}
