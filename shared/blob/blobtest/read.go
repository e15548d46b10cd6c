package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing/iotest"
	"time"

	"ferry/shared/blob"
)

func readCases() []testCase {
	one := objects{"files/k": {100_000, 1}}
	return []testCase{
		{"a missing object is ErrNotFound", one,
			looksAt("files/none", "files/K", "files/k.k", "files-other/k", "backup/k"), nil, nil},
		{"an empty reader does what io.Reader and io.Seeker say", objects{"files/k": {0, 1}}, readConforms, nil, nil},
		{"seeking reaches every byte, apart from other readers", objects{"files/k": {6 * mib, 1}}, readSeeks, nil, nil},
		{"bad seeks are errors and do not move the reader", one, readBadSeeks, nil, nil},
		{"a reader does what io.Reader and io.Seeker say", objects{"files/k": {3000, 1}}, readConforms, nil, nil},
	}
}

// reader opens an object until the case ends.
func (s *state) reader(place string) io.ReadSeeker {
	s.Helper()
	area, key := s.at(place)
	r, err := s.Open(s.Context(), area, key)
	s.must(err)
	s.Cleanup(func() {
		if err := r.Close(); err != nil {
			s.Errorf("closing: %v", err)
		}
	})
	return r
}

func readSeeks(s *state) error {
	content, r, other := s.want["files/k"].bytes(), s.reader("files/k"), s.reader("files/k")
	size := int64(len(content))
	for _, step := range []struct {
		offset int64
		whence int
		at     int64 // where that leads
		read   int
	}{
		{0, io.SeekEnd, size, 0}, {0, io.SeekStart, 0, 100}, {0, io.SeekCurrent, 100, 50}, {-20, io.SeekCurrent, 130, 20},
		{3 * mib, io.SeekStart, 3 * mib, mib}, {1000, io.SeekCurrent, 4*mib + 1000, 10}, {-5, io.SeekEnd, size - 5, 5},
		{1, io.SeekStart, 1, 1}, {-size, io.SeekEnd, 0, 10}, {5*mib - 3, io.SeekStart, 5*mib - 3, 6},
		{size - 1, io.SeekStart, size - 1, 1}, {5, io.SeekStart, 5, 0}, {7, io.SeekCurrent, 12, 3},
	} {
		at, err := r.Seek(step.offset, step.whence)
		s.must(err)
		part := make([]byte, step.read)
		_, err = io.ReadFull(r, part)
		if at != step.at || err != nil || !bytes.Equal(part, content[at:at+int64(step.read)]) {
			s.Fatalf("%+v: at %d, other bytes or error %v", step, at, err)
		}
		_, err = io.ReadFull(other, make([]byte, 1000))
		s.must(err)
	}
	if rest, err := io.ReadAll(other); err != nil || !bytes.Equal(rest, content[13_000:]) {
		s.Errorf("another reader ends with %d bytes and error %v", len(rest), err)
	}
	_, err := r.Seek(size-10, io.SeekStart)
	s.must(err)
	rest, err := io.ReadAll(r)
	if !bytes.Equal(rest, content[size-10:]) {
		s.Errorf("the last 10 bytes came as %d", len(rest))
	}
	return err
}

func readBadSeeks(s *state) error {
	content, r := s.want["files/k"].bytes(), s.reader("files/k")
	_, err := r.Seek(4, io.SeekStart)
	s.must(err)
	for offset, whence := range map[int64]int{-1: io.SeekStart, -5: io.SeekCurrent, -100_001: io.SeekEnd, 0: 99} {
		if _, err := r.Seek(offset, whence); err == nil {
			s.Errorf("seeking %d from %d: got no error", offset, whence)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, content[4:]) {
		s.Errorf("got %d bytes and error %v, want those from byte 4", len(rest), err)
	}
	if at, err := r.Seek(200_000, io.SeekStart); at != 200_000 || err != nil {
		s.Errorf("seeking beyond the end: got %d and error %v", at, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		s.Errorf("reading beyond the end: got %d bytes and error %v, want EOF", n, err)
	}
	return nil
}

func readConforms(s *state) error {
	return iotest.TestReader(s.reader("files/k"), s.want["files/k"].bytes())
}

func signCases() []testCase {
	cases := []testCase{
		{"a URL can be signed for a missing object", nil, getsSigned("files/none", "", "", 404, 0, 0), nil, nil},
		{"a signed URL that was changed returns nothing", objects{"files/aaaa": {10, 1}, "files/bbbb": {10, 2}},
			getsSigned("files/aaaa", "files/bbbb", "", 403, 0, 0), nil, nil},
	}
	for _, place := range []string{"files/k", "files+a@b.c/x+y@z", "backup/k", "backup+a@b.c/x+y@z"} {
		for _, size := range []int{0, 100_000} {
			name := fmt.Sprintf("a signed URL returns %d bytes of %s with their type and name", size, place)
			cases = append(cases, testCase{name, objects{place: {size, 1}}, getsSigned(place, "", "", 200, 0, size), nil, nil})
		}
	}
	for ranges, at := range map[string][2]int{
		"bytes=0-0": {0, 1}, "bytes=1000-1999": {1000, 2000}, "bytes=-5": {6*mib - 5, 6 * mib},
		"bytes=6291455-": {6*mib - 1, 6 * mib},
	} {
		get := getsSigned("files/k", "", ranges, 206, at[0], at[1])
		cases = append(cases, testCase{"a signed URL returns " + ranges, objects{"files/k": {6 * mib, 1}}, get, nil, nil})
	}
	return cases
}

func signed() blob.Signed {
	return blob.Signed{
		Expires:            5 * time.Minute,
		ContentType:        "text/html; charset=utf-8",
		ContentDisposition: `attachment; filename="r\"e port+1.html"; filename*=UTF-8''r%C3%A9%20port%2B1.html`,
	}
}

// getsSigned makes a plain GET of a signed URL, sending only what a stranger would. The URL may
// be changed to another object's first. It skips the case if the store cannot sign.
func getsSigned(place, other, ranges string, status, from, to int) action {
	return func(s *state) error {
		area, key := s.at(place)
		url, err := s.SignGet(s.Context(), area, key, signed())
		if errors.Is(err, blob.ErrUnsupported) {
			s.Skip("this store does not sign URLs")
		}
		s.must(err)
		content := s.want[place].bytes()
		if other != "" {
			_, otherKey := s.at(other)
			url, content = strings.Replace(url, key, otherKey, 1), s.want[other].bytes()
		}
		get := blob.SignedPart{Method: http.MethodGet, URL: url, Header: map[string]string{}}
		if ranges != "" {
			get.Header["Range"] = ranges
		}
		res, body, err := s.request(get, http.NoBody, 0)
		s.must(err)
		if res.StatusCode != status || status < 300 && !bytes.Equal(body, content[from:to]) {
			s.Errorf("got status %d and %d bytes, want %d and bytes %d to %d", res.StatusCode, len(body), status, from, to)
		}
		if status >= 300 && len(content) > 0 && bytes.Contains(body, content) {
			s.Error("the answer has the object's bytes")
		}
		labels := res.Header.Get("Content-Type") + " " + res.Header.Get("Content-Disposition")
		if want := signed().ContentType + " " + signed().ContentDisposition; status < 300 && labels != want {
			s.Errorf("the answer is labelled %s, want %s", labels, want)
		}
		return nil
	}
}
