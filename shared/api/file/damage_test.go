package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

// replace gives an object other bytes, or removes it if there are none.
func (s sharer) replace(key string, content []byte) {
	s.Helper()
	err := s.Data.Disk.Delete(s.Context(), blob.Files, key)
	if content != nil && err == nil {
		_, err = s.Data.Disk.Create(s.Context(), blob.Files, key, bytes.NewReader(content), int64(len(content)))
	}
	expect.NoErr(s.TB, err)
}

// TestDamagedFileIsNeverServedAsGood damages an object in the table, files that are
// verified before the first byte, and one that is verified while it is sent.
func TestDamagedFileIsNeverServedAsGood(t *testing.T) {
	t.Parallel()
	const cutOff = 0
	for name, size := range map[string]int{
		"in the table":               10,
		"a file":                     40_000,
		"the largest verified first": 4 << 20,
		"larger":                     4<<20 + 1,
	} {
		whole := 500
		if size > 4<<20 {
			whole = cutOff
		}
		content := bytes.Repeat([]byte("x"), size)
		flipped := append(bytes.Clone(content[1:]), 'y')
		for _, k := range []struct {
			damage              string
			stored              []byte
			whole, head, ranged int // the status, or cutOff
		}{
			{damage: "a flipped byte", stored: flipped, whole: whole, head: 200, ranged: 206},
			{damage: "a truncated file", stored: content[1:], whole: 500, head: 500, ranged: 500},
			{damage: "a longer file", stored: append(bytes.Clone(content), 'x'), whole: 500, head: 500, ranged: 500},
			{damage: "a missing file", whole: 500, head: 500, ranged: 500},
		} {
			t.Run(name+", "+k.damage, func(t *testing.T) {
				t.Parallel()
				s := begin(t)
				s.InProcess("it damages what is stored")
				link := s.share("a", string(content))
				key := s.Objects(blob.Files)[0]
				s.replace(key, k.stored)
				s.wantStatus(k.whole, "GET", link)
				s.wantStatus(k.whole, "GET", link, "If-None-Match", `"another"`)
				s.wantStatus(k.whole, "GET", link, "Range", "bytes=1-2", "If-Range", `"another"`)
				s.wantStatus(k.ranged, "GET", link, "Range", "bytes=1-2")
				s.wantStatus(k.head, "HEAD", link)
				s.replace(key, content)
				s.wantStatus(200, "GET", link)
				s.wantDownloads("damaged answers and a good one", link, 1)
			})
		}
	}
}

// wantStatus checks the status of an answer, which is 0 if it was cut off, and that the
// log has an error if the answer is one.
func (s sharer) wantStatus(want int, method, link string, headers ...string) {
	s.Helper()
	logged := len(s.Log.String())
	req, err := http.NewRequestWithContext(s.Context(), method, link, nil)
	expect.NoErr(s.TB, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req) // Send takes no answer that is cut off
	expect.NoErr(s.TB, err)
	defer resp.Body.Close()
	status := resp.StatusCode
	if _, err := io.Copy(io.Discard, resp.Body); errors.Is(err, io.ErrUnexpectedEOF) {
		status = 0
	}
	expect.Equal(s.TB, fmt.Sprintf("the status of %s %v", method, headers), status, want)
	if failed := want == 0 || want == 500; failed != strings.Contains(s.Log.String()[logged:], "level=ERROR") {
		s.Errorf("%s %v: the log says %s", method, headers, s.Log.String()[logged:])
	}
	if status == 500 {
		wantLost(s.TB, resp.Header)
	}
}

// wantLost checks that an answer tells what a person can do about bytes that are lost, and
// nothing of the file.
func wantLost(t testing.TB, h http.Header) {
	t.Helper()
	id := h.Get("X-Request-Id")
	const says = "the service has lost the bytes of this file; tell its operator the request id "
	if id == "" || h.Get("Ferry-Error") != says+id || h.Get("X-Amz-Checksum-Crc64nvme") != "" {
		t.Errorf("the headers are %v", h)
	}
}

// direct is an answer that a server's connection could send by itself.
type direct struct {
	*httptest.ResponseRecorder
	files int64 // bytes of them, read from an *os.File
}

func (d *direct) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	n, err := io.Copy(struct{ io.Writer }{d.ResponseRecorder}, r)
	if _, isFile := limited.R.(*os.File); ok && isFile {
		d.files += n
	}
	return n, err
}

// TestKnownBytesLeaveByTheKernelUntilTheirFileChanges: what is not known is read, verified, and known then.
func TestKnownBytesLeaveByTheKernelUntilTheirFileChanges(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100_000, 4<<20 + 300_000} {
		content := strings.Repeat("x", size)
		lost := 500
		if size > 4<<20 {
			lost = 0
		}
		for what, change := range map[string]struct {
			do   func(s sharer, path string) error
			want int
		}{
			"nothing": {func(sharer, string) error { return nil }, 200},
			"almost a day": {func(s sharer, _ string) error {
				s.Clock.Advance(24*time.Hour - time.Minute)
				return nil
			}, 200},
			"more than a day": {func(s sharer, _ string) error {
				s.Clock.Advance(25 * time.Hour)
				return nil
			}, 206},
			"times alone": {func(_ sharer, path string) error {
				return os.Chtimes(path, time.Time{}, time.Now())
			}, 206},
			"a byte in place":     {func(_ sharer, path string) error { return overwrite(path, size/2, "y") }, lost},
			"the last byte":       {func(_ sharer, path string) error { return overwrite(path, size-1, "y") }, lost},
			"a byte and the time": {damagedAndDated, lost},
			"another file by mv": {func(_ sharer, path string) error {
				return exchange(path, strings.Repeat("y", size))
			}, lost},
			"the same again by mv": {func(_ sharer, path string) error { return exchange(path, content) }, 206},
			"a file that is cut": {func(_ sharer, path string) error {
				return os.Truncate(path, int64(size-1))
			}, 500},
			"a file that is longer": {func(_ sharer, path string) error {
				return os.Truncate(path, int64(size+1))
			}, 500},
		} {
			t.Run(fmt.Sprint(size, " bytes, ", what), func(t *testing.T) {
				t.Parallel()
				s := begin(t)
				s.InProcess("it changes what is stored")
				link := s.share("a", content)
				h := file.Download().New(&api.Ports{Service: s.Service.Service})
				get := func() *direct {
					w, r := &direct{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequest("GET", link, nil)
					r.Header.Set("User-Agent", "curl/8")
					h.ServeHTTP(w, r)
					expect.Equal(t, "the content", w.Body.String() == content, true)
					return w
				}
				expect.Equal(t, "bytes by the kernel, of what was stored", get().files, int64(size))
				expect.NoErr(t, change.do(s, filepath.Join(s.Dir, "files", s.Objects(blob.Files)[0])))
				if change.want == lost || change.want == 500 {
					s.wantStatus(change.want, "GET", link)
					s.wantStatus(change.want, "GET", link)
					return
				}
				read := get().files
				if change.want == 206 && size > 4<<20 { // a smaller file is verified first, and then sent by the kernel
					expect.Equal(t, "bytes by the kernel, of what has changed", read, 0)
				}
				expect.Equal(t, "bytes by the kernel, of what was verified", get().files, int64(size))
			})
		}
	}
}

func overwrite(path string, at int, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), int64(at))
	return errors.Join(err, f.Close())
}

// damagedAndDated changes a byte and puts the time of modification back.
func damagedAndDated(_ sharer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	err = overwrite(path, 0, "y")
	for now := info; err == nil && fmt.Sprint(now.Sys()) == fmt.Sprint(info.Sys()); { // until the system's clock ticks
		err = os.Chtimes(path, time.Time{}, info.ModTime())
		if err == nil {
			now, err = os.Stat(path)
		}
	}
	return err
}

func exchange(path, content string) error {
	return errors.Join(os.WriteFile(path+"-", []byte(content), 0o600), os.Rename(path+"-", path))
}

// meddling changes the file while it is sent.
type meddling struct {
	direct
	do func()
}

func (m *meddling) ReadFrom(r io.Reader) (int64, error) {
	n, err := m.direct.ReadFrom(r)
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return n, err
}

func TestAFileThatChangesWhileTheKernelSendsItIsVerifiedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	for what, k := range map[string]struct {
		do   func(path string) error
		good bool
	}{
		"a byte in place": {func(path string) error { return overwrite(path, 100, "y") }, false},
		"it is cut":       {func(path string) error { return os.Truncate(path, 100) }, false},
		"it is moved": {func(path string) error {
			return errors.Join(os.Link(path, path+"-"), os.Remove(path))
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.InProcess("it changes what is stored")
			link := s.share("a", strings.Repeat("x", size))
			path := filepath.Join(s.Dir, "files", s.Objects(blob.Files)[0])
			w := &meddling{direct{ResponseRecorder: httptest.NewRecorder()}, func() { expect.NoErr(t, k.do(path)) }}
			r := httptest.NewRequest("GET", link, nil)
			r.Header.Set("User-Agent", "curl/8")
			func() {
				defer func() { expect.Equal(t, "it is cut off", recover() != nil, !k.good) }()
				file.Download().New(&api.Ports{Service: s.Service.Service}).ServeHTTP(w, r)
			}()
			expect.Equal(t, "all was sent", w.Body.Len() == size, k.good)
			if k.good {
				s.wantDownloads(what, link, 1)
			}
		})
	}
}
