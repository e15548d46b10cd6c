// Package blobtest is the conformance suite of the port blob: every backend
// must pass it. It is a table of cases, each a rule that the port's
// documentation states, and one runner.
package blobtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

const mib = 1 << 20

// testCase is one rule, and how to see that it holds.
type testCase struct {
	name string
	seed objects // what is stored before
	do   action  // what happens
	err  error   // how it ends: an error of this kind
	want objects // what is stored afterwards; nil: the same as before
}

// action does something with objects of owners that no other case has.
type action func(*state) error

// objects are contents by their places. The place files/k is the object k of
// the case's owner in the user area, files-b/k that of the owner with -b behind
// its name.
type objects map[string]data

// data stands for so many bytes, others for each tag.
type data struct{ size, tag int }

// bytes returns the same ones each time, of which no two blocks are alike.
func (d data) bytes() []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(d.tag))
	binary.LittleEndian.PutUint64(key[8:], uint64(d.size))
	content, block := make([]byte, d.size), make([]byte, min(d.size, 64<<10))
	_, _ = mathrand.NewChaCha8(key).Read(block) // it has no errors
	copy(content, block)
	for at := len(block); at < d.size; at += len(block) {
		copy(content[at:], block)
		copy(content[at:], fmt.Sprint(at))
	}
	return content
}

// PartsStore is a store with sessions of parts, which each of ours is.
type PartsStore interface {
	blob.Store
	blob.Parts
}

// Truncates says of a stand-in that it takes fewer bytes of a part than were
// signed and announced, unless they have a checksum.
type Truncates bool

// Run runs the suite. open gives a store that is empty or shared with other
// tests, also ones that run at the same time: each case keeps to owners with
// random names.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	t.Helper()
	cases := slices.Concat(createCases(), failureCases(), readCases(), copyCases(), listCases(), keyCases(), signCases(),
		concurrencyCases(), invalidCases())
	runAll(t, cases, func(t *testing.T) PartsStore { return open(t).(PartsStore) }, true)
}

// RunParts runs the suite of the port blob.Parts. A part goes through the store
// where it takes some, else by plain HTTP as the store's signed request says.
func RunParts(t *testing.T, open func(t *testing.T) PartsStore, truncates Truncates) {
	t.Helper()
	runAll(t, partsCases(), open, truncates)
}

func runAll(t *testing.T, cases []testCase, open func(t *testing.T) PartsStore, truncates Truncates) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			owner := "test-" + rand.Text()
			c.run(&state{T: t, PartsStore: open(t), truncates: truncates, owner: owner, places: map[string]bool{}})
		})
	}
}

func (c testCase) run(s *state) {
	s.Helper()
	for place, d := range c.seed {
		s.must(create(place, d)(s))
	}
	if c.want == nil {
		c.want = c.seed
	}
	s.want = maps.Clone(c.want)
	s.wantErr("the action", c.do(s), c.err)
	s.wantStored()
}

// state is a store together with an owner that no other case has.
type state struct {
	*testing.T
	PartsStore
	truncates Truncates
	owner     string
	session   session // of an object that arrives in parts
	want      objects // to be stored in the end

	mu     sync.Mutex
	places map[string]bool // those that were spoken of
}

// at is the area and the key of a place.
func (s *state) at(place string) (blob.Area, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[place] = true
	owner, name, _ := strings.Cut(place, "/")
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		if behind, ok := strings.CutPrefix(owner, string(area)); ok {
			return area, s.owner + behind + "/" + name
		}
	}
	s.Fatalf("%s is no place", place)
	return "", ""
}

// create makes an object and checks what is told of it.
func create(place string, d data) action { return createFrom(place, d, int64(d.size), nil) }

// createFrom announces a number of bytes and may change the reader that gives them.
func createFrom(place string, d data, announced int64, change func(*state, io.Reader) io.Reader) action {
	return func(s *state) error {
		area, key := s.at(place)
		content := d.bytes()
		r := io.Reader(struct{ io.Reader }{bytes.NewReader(content)}) // with Read alone, as a request's body
		if change != nil {
			r = change(s, r)
		}
		got, err := s.Create(s.Context(), area, key, r, announced)
		want := blob.Written{Size: int64(d.size), CRC64NVME: crc(content)}
		if err == nil && got != want {
			s.Errorf("creating %s gave %+v, want %+v", place, got, want)
		}
		return err
	}
}

func remove(place string) action {
	return func(s *state) error {
		area, key := s.at(place)
		return s.Delete(s.Context(), area, key)
	}
}

func duplicate(from, to string) action {
	return func(s *state) error {
		area, key := s.at(from)
		toArea, toKey := s.at(to)
		return s.Copy(s.Context(), area, key, toArea, toKey)
	}
}

// inTurn does one after the other; all but the last are done.
func inTurn(actions ...action) action {
	return func(s *state) error {
		last := len(actions) - 1
		for i, do := range actions[:last] {
			if err := do(s); err != nil {
				return fmt.Errorf("step %d: %v", i, err)
			}
		}
		return actions[last](s)
	}
}

// fails does something that ends with an error of a kind.
func fails(do action, want error) action {
	return func(s *state) error {
		s.wantErr("a step", do(s), want)
		return nil
	}
}

// looksAt has the runner look at places where nothing may be.
func looksAt(places ...string) action {
	return func(s *state) error {
		for _, place := range places {
			s.at(place)
		}
		return nil
	}
}

// errAny stands for any error, errInvalid for one that has no meaning of its own.
type wanted string

func (e wanted) Error() string { return string(e) }

const (
	errAny     wanted = "any error"
	errInvalid wanted = "an error without a meaning of its own"
	errCut     wanted = "line cut" // of a reader
)

// kind tells what an error means to a caller.
func kind(err error) string {
	if err == nil {
		return "no error"
	}
	if sum, ok := errors.AsType[*blob.SumError](err); ok {
		return sum.Error()
	}
	if missing, ok := errors.AsType[*blob.MissingError](err); ok {
		return missing.Error()
	}
	for _, meaning := range []error{
		blob.ErrNotFound, blob.ErrExists, blob.ErrFull, blob.ErrLength, blob.ErrUnsupported, blob.ErrNoUpload,
		blob.ErrSuperseded, context.Canceled, io.ErrUnexpectedEOF, errCut,
	} {
		if errors.Is(err, meaning) {
			return meaning.Error()
		}
	}
	return errInvalid.Error()
}

func (s *state) wantErr(what string, got, want error) {
	s.Helper()
	if kind(got) != kind(want) && !(want == errAny && got != nil) {
		s.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// must ends the case on an error of what another case checks.
func (s *state) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wantStored compares what is wanted with what is listed and with what is read.
func (s *state) wantStored() {
	s.Helper()
	want := map[blob.Area]map[string]int64{blob.Files: {}, blob.Backup: {}}
	for place, d := range s.want {
		area, key := s.at(place)
		want[area][key] = int64(d.size)
	}
	for area, sizes := range want {
		got := map[string]int64{}
		for _, o := range s.list(area, blob.MaxList) {
			got[o.Key] = o.Size
			if time.Since(o.Modified).Abs() > time.Hour { // the store's clock may be another
				s.Errorf("%s was modified %s", o.Key, o.Modified)
			}
		}
		if !maps.Equal(got, sizes) {
			s.Errorf("%s has %v, want %v", area, got, sizes)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(s.places)) {
		s.wantObject(place)
	}
}

func (s *state) wantObject(place string) {
	s.Helper()
	area, key := s.at(place)
	d, there := s.want[place]
	r, err := s.Open(context.WithoutCancel(s.Context()), area, key)
	if err == nil {
		defer r.Close()
	}
	switch {
	case !there:
		s.wantErr("opening "+place, err, blob.ErrNotFound)
	case err != nil:
		s.wantErr("opening "+place, err, nil)
	default:
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, d.bytes()) {
			s.Errorf("%s has %d bytes, not the %d of tag %d, or error %v", place, len(got), d.size, d.tag, err)
		}
	}
}

// list pages through the objects of the case's owners. Those of other cases may
// lie before and behind them.
func (s *state) list(area blob.Area, limit int) (own []blob.Object) {
	s.Helper()
	for after := s.owner; ; {
		page, err := s.List(s.Context(), area, after, limit)
		s.must(err)
		for _, o := range page {
			if o.Key <= after || len(page) > limit {
				s.Fatalf("%s came after %s, with %d objects at limit %d", o.Key, after, len(page), limit)
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

func crc(content []byte) uint64 { return crc64nvme.Checksum(content) }

// nothing is done where the runner itself checks the rule.
func nothing(*state) error { return nil }

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
