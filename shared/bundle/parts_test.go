package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"ferry/shared/bundle"
)

// memory is the files of a bundle, in memory. It counts.
type memory struct {
	all          []made
	bytes        atomic.Int64 // that were read
	opened, open atomic.Int64
}

func (m *memory) file(i int) (bundle.File, error) {
	if m.all[i].content == "" {
		return nil, errors.New("an empty file is opened")
	}
	m.opened.Add(1)
	m.open.Add(1)
	return &opened{strings.NewReader(m.all[i].content), m}, nil
}

type opened struct {
	io.ReaderAt
	memory *memory
}

func (o *opened) ReadAt(b []byte, off int64) (int, error) {
	n, err := o.ReaderAt.ReadAt(b, off)
	o.memory.bytes.Add(int64(n))
	return n, err
}

func (o *opened) Close() error { o.memory.open.Add(-1); return nil }

// partsOf plans a bundle and cuts it.
func partsOf(t testing.TB, m *memory, size int64) *bundle.Parts {
	t.Helper()
	l, err := bundle.Plan(entriesOf(m.all))
	must(t, err)
	return bundle.NewParts(l, size, m.file)
}

func readPart(t testing.TB, p *bundle.Parts, number int) ([]byte, error) {
	t.Helper()
	r := p.Open(t.Context(), number)
	defer r.Close()
	return io.ReadAll(r)
}

func TestPartsOfAnySizeJoinToTheBundle(t *testing.T) {
	t.Parallel()
	want := archive(t, samples())
	for _, size := range []int64{19, 30, 64, 1000, 9999, int64(len(want)) - 1, int64(len(want)), 1 << 40} {
		m := &memory{all: samples()}
		p := partsOf(t, m, size)
		order := p.Order()
		if len(order) != p.Count() {
			t.Fatalf("%d of %d parts have a place in the order", len(order), p.Count())
		}
		random := slices.Clone(order)
		rand.New(rand.NewPCG(1, uint64(size))).Shuffle(len(order), func(i, j int) {
			random[i], random[j] = random[j], random[i]
		})
		for name, numbers := range map[string][]int{"again": order, "any": random} { // the same p
			got := make([]byte, 0, len(want))
			parts := map[int][]byte{}
			for _, number := range numbers {
				part, err := readPart(t, p, number)
				must(t, err)
				parts[number] = part
			}
			for number := range p.Count() {
				got = append(got, parts[number+1]...)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("parts of %d bytes in %s order give another archive", size, name)
			}
		}
		if m.open.Load() != 0 {
			t.Errorf("%d files stay open", m.open.Load())
		}
	}
}

func TestPartsAreMadeAtOnceAndByteByByte(t *testing.T) {
	t.Parallel()
	want := archive(t, samples())
	const size = 97
	p := partsOf(t, &memory{all: samples()}, size)
	var wg sync.WaitGroup
	for number := p.Count(); number > 0; number-- {
		for range 2 {
			wg.Go(func() {
				r := p.Open(t.Context(), number)
				defer r.Close()
				part, err := io.ReadAll(iotest.OneByteReader(r))
				from := (number - 1) * size
				if err != nil || !bytes.Equal(part, want[from:min(from+size, len(want))]) {
					t.Errorf("part %d: %v", number, err)
				}
			})
		}
	}
	wg.Wait()
}

func TestTheOrderReadsNoLongFileTwice(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 1000)
	m := &memory{all: []made{
		{bundle.Entry{Path: "a"}, long}, {bundle.Entry{Path: "b"}, long}, {bundle.Entry{Path: "c"}, "c"},
	}}
	p := partsOf(t, m, 1000)
	order := p.Order()
	// The headers of a and b are in the parts 1 and 11, which has the end of a too. The directory
	// is in part 21, with the end of b and with c.
	want := []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 11, 1, 21}
	if !slices.Equal(order, want) {
		t.Fatalf("the order is %v", order)
	}
	for _, number := range order {
		if _, err := readPart(t, p, number); err != nil {
			t.Fatal(err)
		}
	}
	// Twice are read: what a part has behind a header or before the directory.
	if ahead := m.bytes.Load() - int64(2*len(long)+1); ahead < 0 || ahead > 3*1000 {
		t.Errorf("%d bytes are read ahead", ahead)
	}
}

func TestAFileThatChangesIsNamedAndNeverSentWhole(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{"another byte": "0123456x89", "shorter": "01234567", "empty": " "} {
		m := &memory{all: []made{{bundle.Entry{Path: "dir/file"}, "0123456789"}}}
		p := partsOf(t, m, 1<<20)
		before, err := readPart(t, p, 1)
		must(t, err)
		m.all[0].content = now
		after, err := readPart(t, p, 1)
		if !errors.Is(err, bundle.ErrChanged) || err.Error() != `"dir/file" changed while it was read` {
			t.Errorf("%s: %v", name, err)
		}
		if bytes.Equal(after[:min(len(after), len(before))], before) || len(after) >= 30+8+9+10 {
			t.Errorf("%s: %d bytes are given", name, len(after))
		}
		m.all[0].content = "0123456789"
		if again, err := readPart(t, p, 1); err != nil || !bytes.Equal(again, before) {
			t.Errorf("%s: once it is as before: %v", name, err)
		}
	}
}

// broken is a file that cannot be read or closed.
type broken struct{ read, close error }

func (b broken) ReadAt(p []byte, _ int64) (int, error) { return len(p), b.read }
func (b broken) Close() error                          { return b.close }

func TestErrorsOfFilesNameThem(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	l, err := bundle.Plan([]bundle.Entry{{Path: "dir/file", Length: 10}})
	must(t, err)
	for name, open := range map[string]func(int) (bundle.File, error){
		"open":  func(int) (bundle.File, error) { return nil, gone },
		"read":  func(int) (bundle.File, error) { return broken{read: gone}, nil },
		"close": func(int) (bundle.File, error) { return broken{close: gone}, nil },
	} {
		r := bundle.NewParts(l, 1<<20, open).Open(t.Context(), 1)
		for range 2 { // the error stays
			if n, err := r.Read(make([]byte, 100)); n > 0 ||
				!errors.Is(err, gone) ||
				err.Error() != `reading "dir/file": gone` {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
		}
		if err := r.Close(); name != "close" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAContextEndsReadingAhead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	tired := errors.New("tired")
	m := &memory{all: samples()}
	p := partsOf(t, m, 1<<20)
	r := p.Open(ctx, 1)
	cancel(tired)
	if n, err := r.Read(make([]byte, 10)); n > 0 || !errors.Is(err, tired) || m.opened.Load() > 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
