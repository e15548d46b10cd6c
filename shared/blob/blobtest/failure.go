package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"ferry/shared/blob"
)

func failureTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"fewer or more bytes than announced are ErrLength": wrongLength,
		"a reader without end is cut at the length":        endlessReader,
		"an error of the reader comes back wrapped":        readerFails,
		"a context that ends midway leaves no object":      contextEndsMidway,
		"a context that has ended fails every method":      contextEnded,
		"an unknown area is an error of every method":      unknownArea,
	}
}

func wrongLength(t *testing.T, s suite) {
	tests := []struct{ give, announce int }{
		{0, 1}, {1, 0}, {9, 10}, {11, 10}, {10, 1}, {1, 10 * mib}, {5*mib - 1, 5 * mib}, {5*mib + 1, 5 * mib}, {12 * mib, 12*mib + 1}, {12*mib + 1, 12 * mib}, {12 * mib, 6 * mib},
	}
	for _, tc := range tests {
		key := s.key(fmt.Sprintf("%d-%d", tc.give, tc.announce))
		_, err := s.Create(t.Context(), blob.Files, key, reader(content(t, tc.give)), int64(tc.announce))
		if !errors.Is(err, blob.ErrLength) {
			t.Errorf("%d bytes instead of %d: got error %v, want ErrLength", tc.give, tc.announce, err)
		}
		s.wantNone(blob.Files, key)
	}
}

func endlessReader(t *testing.T, s suite) {
	for _, announced := range []int64{0, 10, 6 * mib} {
		key := s.key(fmt.Sprint(announced))
		if _, err := s.Create(t.Context(), blob.Files, key, endless{}, announced); !errors.Is(err, blob.ErrLength) {
			t.Errorf("%d bytes announced: got error %v, want ErrLength", announced, err)
		}
		s.wantNone(blob.Files, key)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func readerFails(t *testing.T, s suite) {
	failures := map[string]error{"own": errors.New("line cut"), "unexpected": io.ErrUnexpectedEOF}
	for name, failure := range failures {
		for _, at := range []int{0, 100, 6 * mib} {
			for _, announced := range []int64{-1, int64(at), 12 * mib} {
				key := s.key(fmt.Sprintf("%s-%d-%d", name, at, announced))
				r := io.MultiReader(bytes.NewReader(content(t, at)), errReader{failure})
				if _, err := s.Create(t.Context(), blob.Files, key, r, announced); !errors.Is(err, failure) {
					t.Errorf("%s: got error %v, want %v", key, err, failure)
				}
				s.wantNone(blob.Files, key)
			}
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func contextEndsMidway(t *testing.T, s suite) {
	for _, at := range []int{0, 1000, 6 * mib} {
		for _, announced := range []int64{12 * mib, -1} {
			ctx, cancel := context.WithCancel(t.Context())
			key := s.key(fmt.Sprintf("%d-%d", at, announced))
			r := &hookReader{r: bytes.NewReader(content(t, 12*mib)), at: at, hook: cancel}
			if _, err := s.Create(ctx, blob.Files, key, r, announced); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got error %v, want context.Canceled", key, err)
			}
			s.wantNone(blob.Files, key)
			cancel()
		}
	}
}

func contextEnded(t *testing.T, s suite) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.create(blob.Files, s.key("k"), []byte("x"))
	for name, err := range s.callAll(ctx, blob.Files, s.key("k"), s.key("new")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want context.Canceled", name, err)
		}
	}
	s.wantNone(blob.Files, s.key("new"))
	s.wantContent(blob.Files, s.key("k"), []byte("x"))
}

func unknownArea(t *testing.T, s suite) {
	for _, area := range []blob.Area{"", "other", "..", "files/.."} {
		for name, err := range s.callAll(t.Context(), area, s.key("k"), s.key("new")) {
			if err == nil || errors.Is(err, blob.ErrNotFound) {
				t.Errorf("area %q, %s: got error %v, want one that is not ErrNotFound", area, name, err)
			}
		}
	}
}

// callAll calls every method that works on objects and returns their errors.
func (s suite) callAll(ctx context.Context, area blob.Area, there, fresh string) map[string]error {
	_, create := s.Store.Create(ctx, area, fresh, reader([]byte("x")), 1)
	r, open := s.Store.Open(ctx, area, there)
	if open == nil {
		r.Close()
	}
	_, list := s.Store.List(ctx, area, "", 1)
	return map[string]error{
		"Create":    create,
		"Open":      open,
		"Copy from": s.Store.Copy(ctx, area, there, blob.Backup, fresh),
		"Copy to":   s.Store.Copy(ctx, blob.Files, there, area, fresh),
		"Delete":    s.Store.Delete(ctx, area, there),
		"List":      list,
	}
}
