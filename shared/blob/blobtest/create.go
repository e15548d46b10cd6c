package blobtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"testing/iotest"
	"time"

	"ferry/shared/blob"
)

func createCases() []testCase {
	var cases []testCase
	for _, size := range []int{
		0, 1, 4095, 4096, 32<<10 + 1, 64 << 10, 64<<10 + 1, 256<<10 - 1, 256 << 10, 256<<10 + 1,
		5*mib - 1, 5 * mib, 5*mib + 1, 20 * mib,
	} {
		d := data{size, 1}
		for _, announced := range []int64{int64(size), -1} {
			cases = append(cases, testCase{
				fmt.Sprintf("%d bytes come back, announced as %d", size, announced), nil,
				createFrom("files/k", d, announced, nil), nil, objects{"files/k": d},
			})
		}
	}
	for _, size := range []int{10, 6 * mib} {
		again := inTurn(
			fails(create("files/k", data{10, 2}), blob.ErrExists),
			create("files/k", data{6 * mib, 2}),
		)
		name := fmt.Sprintf("a key in use is ErrExists and keeps its %d bytes", size)
		cases = append(cases, testCase{
			name, objects{"files/k": {size, 1}}, again, blob.ErrExists, nil,
		})
	}
	for _, d := range []data{{100, 1}, {12 * mib, 1}} {
		name := fmt.Sprintf("an object of %d bytes is invisible until it is whole", d.size)
		do := createFrom("files/k", d, -1, midway(d.size/2, unseen))
		cases = append(cases, testCase{name, nil, do, nil, objects{"files/k": d}})
	}
	slow := func(_ *state, r io.Reader) io.Reader {
		return iotest.DataErrReader(iotest.HalfReader(r))
	}
	one, two := data{10, 1}, data{20, 2}
	return append(cases, []testCase{
		{
			"the same key in two areas is two objects",
			objects{"files/k": one},
			create("backup/k", two),
			nil,
			objects{"files/k": one, "backup/k": two},
		},
		{
			"a reader that gives less than asked for, and io.EOF with the last bytes, is read to its end",
			nil,
			createFrom("files/k", data{50_000, 1}, -1, slow),
			nil,
			objects{"files/k": {50_000, 1}},
		},
		{"a sweep leaves objects and recent creates alone", objects{"files/done": one},
			createFrom("files/k", data{8 * mib, 1}, -1, midway(6*mib, sweep)), nil,
			objects{"files/done": one, "files/k": {8 * mib, 1}}},
	}...)
}

// midway calls a function once, after a reader has returned a number of bytes.
func midway(at int, call func(*state)) func(*state, io.Reader) io.Reader {
	return func(s *state, r io.Reader) io.Reader {
		called := iotest.ErrReader(io.EOF)
		hook := readerFunc(func(p []byte) (int, error) { call(s); return called.Read(p) })
		return io.MultiReader(io.LimitReader(r, int64(at)), hook, r)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func unseen(s *state) {
	wanted := s.want
	s.want = objects{}
	s.wantStored()
	s.want = wanted
}

// sweep removes only what is older than an hour, as other tests may use the store.
func sweep(s *state) {
	_, err := s.Sweep(s.Context(), time.Now().Add(-time.Hour), nil)
	s.must(err)
}

func failureCases() []testCase {
	var cases []testCase
	fail := func(name string, do action, err error) {
		cases = append(cases, testCase{name, nil, do, err, nil})
	}
	for _, c := range []struct{ give, announce int }{
		{0, 1}, {1, 0}, {9, 10}, {11, 10}, {1, 10 * mib}, {5*mib + 1, 5 * mib},
		{12 * mib, 12*mib + 1}, {12*mib + 1, 12 * mib},
	} {
		fail(fmt.Sprintf("%d bytes announced as %d are ErrLength and leave nothing behind",
			c.give, c.announce),
			createFrom("files/k", data{c.give, 1}, int64(c.announce), nil), blob.ErrLength)
	}
	endless := func(*state, io.Reader) io.Reader { return rand.Reader }
	fail("an endless reader is ErrLength and leaves nothing behind",
		createFrom("files/k", data{}, 6*mib, endless), blob.ErrLength)
	for _, at := range []int{0, 100, 6 * mib} {
		for _, announced := range []int64{-1, int64(at), 12 * mib} {
			for _, failure := range []error{errCut, io.ErrUnexpectedEOF} {
				broken := func(_ *state, r io.Reader) io.Reader {
					return io.MultiReader(r, iotest.ErrReader(failure))
				}
				fail(
					fmt.Sprintf(
						"a reader's error %v after %d bytes, announced as %d, is returned",
						failure,
						at,
						announced,
					),
					createFrom("files/k", data{at, 1}, announced, broken),
					failure,
				)
			}
		}
	}
	for _, at := range []int{0, 1000, 6 * mib} {
		for _, announced := range []int64{12 * mib, -1} {
			fail(
				fmt.Sprintf(
					"a context that ends after %d bytes, announced as %d, leaves nothing behind", at, announced,
				),
				canceledAt(at, announced),
				context.Canceled,
			)
		}
	}
	return cases
}

func canceledAt(at int, announced int64) action {
	return func(s *state) error {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		area, key := s.at("files/k")
		r := midway(at, func(*state) {
			cancel()
		})(s, bytes.NewReader(data{12 * mib, 1}.bytes()))
		_, err := s.Create(ctx, area, key, r, announced)
		return err
	}
}
