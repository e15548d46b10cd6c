package blobtest

import (
	"bytes"
	"io"
	"testing/iotest"
)

func readCases() []testCase {
	one := objects{"files/k": {100_000, 1}}
	return []testCase{
		{"a missing object is ErrNotFound", one,
			looksAt(
				"files/none",
				"files/K",
				"files/k.k",
				"files-other/k",
				"backup/k",
			), nil, nil},
		{
			"an empty reader does what io.Reader and io.Seeker say",
			objects{"files/k": {0, 1}},
			readConforms,
			nil,
			nil,
		},
		{
			"seeking reaches every byte, apart from other readers",
			objects{"files/k": {6 * mib, 1}},
			readSeeks,
			nil,
			nil,
		},
		{"bad seeks are errors and do not move the reader", one, readBadSeeks, nil, nil},
		{
			"a reader does what io.Reader and io.Seeker say",
			objects{"files/k": {3000, 1}},
			readConforms,
			nil,
			nil,
		},
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
		{0, io.SeekEnd, size, 0}, {3 * mib, io.SeekStart, 3 * mib, mib}, {1000, io.SeekCurrent, 4*mib + 1000, 10},
		{-5, io.SeekEnd, size - 5, 5}, {0, io.SeekStart, 0, 100},
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
	if rest, err := io.ReadAll(other); err != nil || !bytes.Equal(rest, content[5000:]) {
		s.Errorf("another reader ends with %d bytes and error %v", len(rest), err)
	}
	return nil
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
