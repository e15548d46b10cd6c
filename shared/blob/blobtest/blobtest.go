// Package blobtest is the conformance suite of the port blob: every backend
// must pass it. It checks each promise that the port's documentation makes.
package blobtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

// Run runs the suite. open gives a store that is empty or shared with other
// tests, also ones that run at the same time: each test of the suite keeps to
// owners with random names of its own.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	t.Helper()
	groups := []struct {
		name  string
		tests map[string]func(*testing.T, suite)
	}{
		{"create", createTests()},
		{"failing create", failureTests()},
		{"open", openTests()},
		{"copy and delete", copyTests()},
		{"list", listTests()},
		{"keys", keyTests()},
		{"signed URL", signTests()},
		{"concurrency", concurrencyTests()},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for name, test := range g.tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, suite{T: t, Store: open(t), owner: "test-" + rand.Text()})
				})
			}
		})
	}
}

// suite is a store together with an owner that no other test uses; further
// owners begin with its name. Its methods end the test on an unexpected error.
type suite struct {
	*testing.T
	blob.Store
	owner string
}

func (s suite) key(name string) string { return s.owner + "/" + name }

func areas() []blob.Area { return []blob.Area{blob.Files, blob.Backup} }

// content gives bytes that no two calls share, and no two blocks of one call.
func content(t testing.TB, n int) []byte {
	t.Helper()
	const block = 64 << 10
	data := make([]byte, n)
	if _, err := rand.Read(data[:min(n, block)]); err != nil {
		t.Fatal(err)
	}
	for at := block; at < n; at += block {
		copy(data[at:], data[:block])
		copy(data[at:], fmt.Sprint(at))
	}
	return data
}

func crc(data []byte) uint64 {
	h := crc64nvme.New()
	h.Write(data)
	return h.Sum64()
}

// reader hides all of a bytes.Reader but Read, as a request's body does.
func reader(data []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(data)} }

func (s suite) create(area blob.Area, key string, data []byte) {
	s.Helper()
	got, err := s.Store.Create(s.Context(), area, key, reader(data), int64(len(data)))
	if err != nil {
		s.Fatalf("creating %s: %v", key, err)
	}
	if want := (blob.Written{Size: int64(len(data)), CRC64NVME: crc(data)}); got != want {
		s.Errorf("creating %s gave %+v, want %+v", key, got, want)
	}
}

func (s suite) open(area blob.Area, key string) io.ReadSeekCloser {
	s.Helper()
	r, err := s.Store.Open(s.Context(), area, key)
	if err != nil {
		s.Fatalf("opening %s: %v", key, err)
	}
	return r
}

func (s suite) wantContent(area blob.Area, key string, want []byte) {
	s.Helper()
	r := s.open(area, key)
	defer r.Close()
	part := make([]byte, 256<<10)
	for at := 0; ; {
		n, err := r.Read(part)
		if !bytes.HasPrefix(want[at:], part[:n]) {
			s.Errorf("%s in %s holds other bytes than those written, from byte %d on", key, area, at)
			return
		}
		at += n
		if err == io.EOF && at == len(want) {
			return
		}
		if err != nil {
			s.Errorf("reading %s in %s ended after %d bytes of %d: %v", key, area, at, len(want), err)
			return
		}
	}
}

// wantNone checks that nothing is to be seen of an object.
func (s suite) wantNone(area blob.Area, key string) {
	s.Helper()
	r, err := s.Store.Open(context.WithoutCancel(s.Context()), area, key)
	if err == nil {
		r.Close()
	}
	if !errors.Is(err, blob.ErrNotFound) {
		s.Errorf("opening %s in %s: got error %v, want ErrNotFound", key, area, err)
	}
	for _, o := range s.list(area) {
		if o.Key == key {
			s.Errorf("%s is listed in %s", key, area)
		}
	}
}

// list returns the test's own objects in one area.
func (s suite) list(area blob.Area) []blob.Object {
	s.Helper()
	return s.listBy(area, blob.MaxList)
}

// listBy pages through the test's own objects. Those of other tests may lie
// before and behind them.
func (s suite) listBy(area blob.Area, limit int) []blob.Object {
	s.Helper()
	var own []blob.Object
	for after := s.owner; ; {
		page, err := s.Store.List(s.Context(), area, after, limit)
		if err != nil {
			s.Fatalf("listing after %s: %v", after, err)
		}
		if len(page) > limit {
			s.Fatalf("got %d objects, the limit is %d", len(page), limit)
		}
		for _, o := range page {
			if o.Key <= after {
				s.Fatalf("%s came after %s", o.Key, after)
			}
			if after = o.Key; !strings.HasPrefix(o.Key, s.owner) {
				return own
			}
			own = append(own, o)
		}
		if len(page) < limit {
			return own
		}
	}
}
