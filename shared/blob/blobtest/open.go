package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"ferry/shared/blob"
)

func openTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"a missing object is ErrNotFound":             openMissing,
		"an empty object reads as empty":              openEmpty,
		"seeking reaches every part":                  openSeeks,
		"a reader behaves as one in all small things": openConforms,
		"bad seeks are errors and move nothing":       openBadSeeks,
		"an HTTP server can answer ranges from it":    openServes,
		"several readers of one object are apart":     openTwice,
	}
}

func openMissing(t *testing.T, s suite) {
	s.create(blob.Files, s.key("k"), []byte("x"))
	for _, key := range []string{s.key("none"), s.key("K"), s.key("k.k"), s.owner + "-other/k"} {
		s.wantNone(blob.Files, key)
	}
	s.wantNone(blob.Backup, s.key("k"))
}

func openEmpty(t *testing.T, s suite) {
	s.create(blob.Files, s.key("k"), nil)
	r := s.open(blob.Files, s.key("k"))
	defer r.Close()
	for _, whence := range []int{io.SeekStart, io.SeekCurrent, io.SeekEnd} {
		if at, err := r.Seek(0, whence); at != 0 || err != nil {
			t.Errorf("seeking from %d: got %d and error %v", whence, at, err)
		}
		if n, err := r.Read(make([]byte, 10)); n != 0 || err != io.EOF {
			t.Errorf("got %d bytes and error %v, want EOF", n, err)
		}
	}
}

func openSeeks(t *testing.T, s suite) {
	data := content(t, 6*mib)
	size := int64(len(data))
	s.create(blob.Files, s.key("k"), data)
	r := s.open(blob.Files, s.key("k"))
	defer r.Close()
	steps := []struct {
		offset int64
		whence int
		read   int
	}{
		{0, io.SeekEnd, 0}, {0, io.SeekStart, 100}, {0, io.SeekCurrent, 50}, {-20, io.SeekCurrent, 20}, {3 * mib, io.SeekStart, mib},
		{1000, io.SeekCurrent, 10}, {-5, io.SeekEnd, 5}, {1, io.SeekStart, 1}, {-size, io.SeekEnd, 10}, {5*mib - 3, io.SeekStart, 6}, {size - 1, io.SeekStart, 1},
		{5, io.SeekStart, 0}, {7, io.SeekCurrent, 3},
	}
	at := int64(0)
	for _, step := range steps {
		switch step.whence {
		case io.SeekStart:
			at = step.offset
		case io.SeekCurrent:
			at += step.offset
		case io.SeekEnd:
			at = size + step.offset
		}
		got, err := r.Seek(step.offset, step.whence)
		if err != nil || got != at {
			t.Fatalf("%+v: at %d with error %v, want %d", step, got, err, at)
		}
		part := make([]byte, step.read)
		if _, err := io.ReadFull(r, part); err != nil || !bytes.Equal(part, data[at:at+int64(step.read)]) {
			t.Fatalf("%+v: read other bytes, or error %v", step, err)
		}
		at += int64(step.read)
	}
	if _, err := r.Seek(size-10, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, data[size-10:]) {
		t.Errorf("the last 10 bytes came as %d, error %v", len(rest), err)
	}
}

func openConforms(t *testing.T, s suite) {
	data := content(t, 3000)
	s.create(blob.Files, s.key("k"), data)
	r := s.open(blob.Files, s.key("k"))
	defer r.Close()
	if err := iotest.TestReader(r, data); err != nil {
		t.Error(err)
	}
}

func openBadSeeks(t *testing.T, s suite) {
	s.create(blob.Files, s.key("k"), []byte("0123456789"))
	r := s.open(blob.Files, s.key("k"))
	defer r.Close()
	if _, err := r.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		offset int64
		whence int
	}{{-1, io.SeekStart}, {-5, io.SeekCurrent}, {-11, io.SeekEnd}, {0, 99}} {
		if _, err := r.Seek(bad.offset, bad.whence); err == nil {
			t.Errorf("%+v: got no error", bad)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "456789" {
		t.Errorf("got %q and error %v, want the bytes from 4 on", rest, err)
	}
	if at, err := r.Seek(20, io.SeekStart); at != 20 || err != nil {
		t.Errorf("seeking behind the end: got %d and error %v", at, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("reading behind the end: got %d bytes and error %v, want EOF", n, err)
	}
}

func openServes(t *testing.T, s suite) {
	data := content(t, 100_000)
	s.create(blob.Files, s.key("k"), data)
	tests := []struct {
		header     string
		status     int
		start, end int
	}{
		{"", 200, 0, 100_000}, {"bytes=0-0", 206, 0, 1}, {"bytes=500-999", 206, 500, 1000}, {"bytes=-7", 206, 99_993, 100_000},
		{"bytes=99999-", 206, 99_999, 100_000}, {"bytes=100000-", 416, 0, 0},
	}
	for _, tc := range tests {
		r := s.open(blob.Files, s.key("k"))
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		if tc.header != "" {
			req.Header.Set("Range", tc.header)
		}
		res := httptest.NewRecorder()
		http.ServeContent(res, req, "k.bin", time.Time{}, r)
		r.Close()
		if res.Code != tc.status {
			t.Errorf("%s: got status %d, want %d", tc.header, res.Code, tc.status)
		} else if tc.status != 416 && !bytes.Equal(res.Body.Bytes(), data[tc.start:tc.end]) {
			t.Errorf("%s: got %d other bytes", tc.header, res.Body.Len())
		}
	}
}

func openTwice(t *testing.T, s suite) {
	data := content(t, 50_000)
	s.create(blob.Files, s.key("k"), data)
	readers := []io.ReadSeekCloser{s.open(blob.Files, s.key("k")), s.open(blob.Files, s.key("k"))}
	for i, r := range readers {
		if _, err := r.Seek(int64(i)*1000, io.SeekStart); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range readers {
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data[i*1000:]) {
			t.Errorf("reader %d: got %d bytes and error %v", i, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("reader %d: closing: %v", i, err)
		}
	}
	if _, err := s.Open(t.Context(), blob.Files, s.key(fmt.Sprint("k", 2))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
}
