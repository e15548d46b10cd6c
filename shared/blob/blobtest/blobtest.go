// Package blobtest is the conformance suite of the port blob: every backend
// must pass it. It is a table of cases, each a rule that the port's
// documentation states, and one runner. Only tests import it. Start reading with
// Run; each file holds the cases of a few methods.
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

// testCase is one rule and how to check it.
type testCase struct {
	name string
	seed objects // what is stored before
	do   action  // what happens
	err  error   // how it ends: an error of this kind
	want objects // what is stored afterwards; nil: the same as before
}

// action does something with objects of owners that no other case uses.
type action func(*state) error

// objects are contents by their places. The place files/k is the object k of the
// case's owner in the user area; files-b/k is that of the owner whose name ends
// in -b.
type objects map[string]data

// data stands for size bytes, which differ with the tag.
type data struct{ size, tag int }

// bytes returns the same content each time; no two of its blocks are alike.
func (d data) bytes() []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(d.tag))
	binary.LittleEndian.PutUint64(key[8:], uint64(d.size))
	content, block := make([]byte, d.size), make([]byte, min(d.size, 64<<10))
	_, _ = mathrand.NewChaCha8(key).Read(block) // never fails
	copy(content, block)
	for at := len(block); at < d.size; at += len(block) {
		copy(content[at:], block)
		copy(content[at:], fmt.Sprint(at))
	}
	return content
}

// PartsStore is a store with sessions of parts, as all backends are.
type PartsStore interface {
	blob.Store
	blob.Parts
}

// Run runs the suite. The store that open returns may be shared with other tests, even at the same
// time: each case uses owners with random names. A part is written through the store or, if it signs
// requests, by plain HTTP.
func Run(t *testing.T, open func(t *testing.T) PartsStore, flaws Flaws) {
	for _, c := range slices.Concat(createCases(), failureCases(), readCases(), copyCases(), listCases(), keyCases(),
		concurrencyCases(), invalidCases(), partsCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			owner := "test-" + rand.Text()
			c.run(&state{
				T:          t,
				PartsStore: open(t),
				flaws:      flaws,
				owner:      owner,
				places:     map[string]bool{},
			})
		})
	}
}

// Flaws are what a stand-in for S3 gets wrong; the suite does not check it then.
type Flaws struct {
	Truncates bool // it accepts fewer bytes of a part than were signed and announced, unless they have a checksum
	MixesSums bool // writers of one part at once can leave the bytes of one with the checksum of another
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

// state is a store and an owner that no other case uses.
type state struct {
	*testing.T
	PartsStore
	flaws   Flaws
	owner   string
	session         // of the object that arrives in parts
	want    objects // what must be stored in the end

	mu     sync.Mutex
	places map[string]bool // all that the case has used
}

// at returns the area and the key of a place.
func (s *state) at(place string) (blob.Area, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[place] = true
	owner, name, _ := strings.Cut(place, "/")
	for _, area := range blob.Areas() {
		if behind, ok := strings.CutPrefix(owner, string(area)); ok {
			return area, s.owner + behind + "/" + name
		}
	}
	s.Fatalf("%s is not a place", place)
	return "", ""
}

// create creates an object and checks what the store says about it.
func create(place string, d data) action { return createFrom(place, d, int64(d.size), nil) }

// createFrom announces a number of bytes; change may replace their reader.
func createFrom(
	place string,
	d data,
	announced int64,
	change func(*state, io.Reader) io.Reader,
) action {
	return func(s *state) error {
		area, key := s.at(place)
		content := d.bytes()
		r := io.Reader(struct{ io.Reader }{bytes.NewReader(content)}) // with Read only, like the body of a request
		if change != nil {
			r = change(s, r)
		}
		got, err := s.Create(s.Context(), area, key, r, announced)
		want := blob.Written{Size: int64(d.size), CRC64NVME: crc(content)}
		if err == nil && got != want {
			s.Errorf("creating %s returned %+v, want %+v", place, got, want)
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

func setAside(place string) action {
	return func(s *state) error {
		area, key := s.at(place)
		return s.SetAside(s.Context(), area, key, time.Now())
	}
}

func duplicate(from, to string) action {
	return func(s *state) error {
		area, key := s.at(from)
		toArea, toKey := s.at(to)
		return s.Copy(s.Context(), area, key, toArea, toKey)
	}
}

// inTurn does one after the other. Only the last may fail.
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

// fails does something that must end with an error of this kind.
func fails(do action, want error) action {
	return func(s *state) error {
		s.wantErr("a step", do(s), want)
		return nil
	}
}

// looksAt makes the runner check that nothing is at these places.
func looksAt(places ...string) action {
	return func(s *state) error {
		for _, place := range places {
			s.at(place)
		}
		return nil
	}
}

// Errors to compare with.
var (
	errAny     = errors.New("any error")
	errInvalid = errors.New("an error without a special meaning")
	errCut     = errors.New("line cut") // a reader's
)

// kind says what an error means to a caller.
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

// must ends the case on an error in something that another case checks.
func (s *state) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wantStored compares what is wanted with what can be listed and read.
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
			if time.Since(o.Modified).Abs() > time.Hour { // the store may have another clock
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
	if !there {
		s.wantErr("opening "+place, err, blob.ErrNotFound)
		return
	}
	s.must(err)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, d.bytes()) {
		s.Errorf("%s has %d bytes, not the %d of tag %d, or error %v",
			place, len(got), d.size, d.tag, err)
	}
	got, err := blob.Measure(s.Context(), s.PartsStore, area, key, false, func(int64) {})
	if want := (blob.Written{Size: int64(d.size), CRC64NVME: crc(d.bytes())}); err != nil ||
		got != want {
		s.Errorf("%s is %+v, %v, want %+v", place, got, err, want)
	}
}

// list pages through the objects of the case's owners. Those of other cases may
// come before and after them.
func (s *state) list(area blob.Area, limit int) (own []blob.Object) {
	s.Helper()
	for after := s.owner; ; {
		page, err := s.List(s.Context(), area, after, limit)
		s.must(err)
		for _, o := range page {
			if o.Key <= after || len(page) > limit {
				s.Fatalf("%s came after %s, with %d objects at limit %d",
					o.Key, after, len(page), limit)
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

// nothing does nothing, for rules that the runner itself checks.
func nothing(*state) error { return nil }

// together runs f in many goroutines at once and waits for all.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
