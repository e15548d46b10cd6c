package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ferry/shared/blob"
)

func copyCases() []testCase {
	one, two := data{1000, 1}, data{1000, 2}
	inFiles, inBackup := objects{"files/k": one}, objects{"backup/k": one}
	inBoth := objects{"files/k": one, "backup/k": one}
	pairs := objects{"files/k": one, "files/k2": one, "backup/k": two, "backup/k2": two}
	toBackup := duplicate("files/k", "backup/k")
	cases := []testCase{
		{
			"an object stays when its copy is deleted",
			inFiles,
			inTurn(toBackup, remove("backup/k")),
			nil,
			inFiles,
		},
		{"a copy is unchanged when the original's key is used again", inFiles,
			inTurn(toBackup, remove("files/k"), create("files/k", two)), nil, objects{
				"files/k":  two,
				"backup/k": one,
			}},
		{
			"a copy of a missing object is ErrNotFound",
			inBackup,
			duplicate("files/k", "backup/new"),
			blob.ErrNotFound,
			nil,
		},
		{"a copy can be repeated", inFiles, inTurn(toBackup, toBackup, toBackup), nil, inBoth},
		{"a delete removes only its object", pairs, remove("files/k"), nil,
			objects{"files/k2": one, "backup/k": two, "backup/k2": two}},
		{
			"what is set aside is gone, and nothing else",
			pairs,
			inTurn(setAside("files/k"), setAside("files/k")),
			nil,
			objects{"files/k2": one, "backup/k": two, "backup/k2": two},
		},
		{
			"a large object is set aside", objects{"files/k": {20 * mib, 1}}, setAside("files/k"),
			nil, objects{},
		},
		{"deleting what never existed is no error", inFiles,
			inTurn(remove("files/never"), remove("backup-never/never")), nil, inFiles},
		{
			"copies of ranges are whole, and can be repeated",
			objects{"files/k": {20 * mib, 1}},
			copiesRanges,
			nil,
			nil,
		},
	}
	for _, size := range []int{0, 100, 20 * mib} {
		d := data{size, 1}
		cases = append(cases, testCase{
			fmt.Sprintf("a copy of %d bytes is whole, both ways, and the original stays",
				size), objects{"files/a": d},
			inTurn(
				duplicate("files/a", "backup/b"),
				duplicate("backup/b", "files.other/c"),
				looksAt("backup/a"),
			), nil,
			objects{"files/a": d, "backup/b": d, "files.other/c": d},
		})
	}
	return cases
}

// copiesRanges copies each range twice, or finds that the store cannot.
func copiesRanges(s *state) error {
	area, key := s.at("files/k")
	_, missing := s.at("files/none")
	_, to := s.at("files/range")
	err := s.CopyRange(s.Context(), area, missing, 0, 1, to)
	if errors.Is(err, blob.ErrUnsupported) {
		return nil
	}
	s.wantErr("a range of a missing object", err, blob.ErrNotFound)
	for off, n := range map[int64]int64{0: 1, 100: 6 * mib, mib + 1: 19*mib - 1} {
		for range 2 {
			s.must(s.CopyRange(s.Context(), area, key, off, n, to))
			got, err := io.ReadAll(s.reader("files/range"))
			if want := s.want["files/k"].bytes()[off : off+n]; err != nil ||
				!bytes.Equal(got, want) {
				s.Errorf("%d bytes from %d: the copy has %d other bytes, %v",
					n, off, len(got), err)
			}
		}
		s.must(s.Delete(s.Context(), area, to))
	}
	return nil
}

func listCases() []testCase {
	few := objects{
		"files/b":  {0, 1},
		"files/d":  {100_000, 1},
		"files0/a": {1000, 1},
		"backup/e": {6 * mib, 1},
	}
	return []testCase{
		{"keys are sorted by their bytes", tree(84), lists(1, 7, 84, blob.MaxList), nil, nil},
		{
			"a page begins and ends where the call says, in its area",
			few,
			lists(1, 2, 3, 4),
			nil,
			nil,
		},
	}
}

// tree returns objects whose order differs from that of their folders.
func tree(n int) objects {
	all := objects{}
	for _, owner := range []string{"a", "a-b", "a.b", "a@b", "a+b", "ab", "a_b", "a0", "A", "B", "a-", "a."} {
		for _, name := range []string{"x", "x-y", "x.y", "X", "0", "x0", "xy"} {
			if len(all) < n {
				all["files"+owner+"/"+name] = data{len(all), 1}
			}
		}
	}
	return all
}

// lists reads pages that begin at, before and after every object.
func lists(limits ...int) action {
	return func(s *state) error {
		var keys []string
		for place := range s.want {
			if area, key := s.at(place); area == blob.Files {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		var afters []string
		for _, behind := range []string{"", "/", "-", ".", "0", "0/a/a", "~"} {
			afters = append(afters, s.owner+behind)
		}
		for _, key := range keys[:min(len(keys), 7)] {
			afters = append(afters, key, key+".", key[:len(key)-1]+"!", key[:len(key)-1]+"~")
		}
		for _, limit := range limits {
			for _, after := range afters {
				s.wantPage(keys, after, limit)
			}
			if got := s.list(blob.Files, limit); len(got) != len(keys) {
				s.Errorf("pages of %d have %d objects, want %d", limit, len(got), len(keys))
			}
		}
		return nil
	}
}

func (s *state) wantPage(keys []string, after string, limit int) {
	s.Helper()
	page, err := s.List(s.Context(), blob.Files, after, limit)
	s.must(err)
	at, found := slices.BinarySearch(keys, after)
	if found {
		at++
	}
	want := keys[at:]
	var got []string
	for _, o := range page {
		if strings.HasPrefix(o.Key, s.owner) {
			got = append(got, o.Key)
		}
	}
	if !slices.Equal(got, want[:min(limit, len(want))]) || len(page) > limit {
		s.Errorf("after %q, limit %d: got %q of %d, want %q",
			after, limit, got, len(page), want)
	}
}

func keyCases() []testCase {
	const owner = "+user@example.org_-."
	longest := strings.Repeat("o", 128-len("test-ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	one := data{100, 1}
	cases := []testCase{
		{"keys that differ only in case stay apart",
			objects{
				"files/k":  {1, 1},
				"files/K":  {1, 2},
				"filesX/k": {1, 3},
				"filesx/k": {1, 4},
			}, nothing, nil, nil},
	}
	for _, key := range []string{
		owner + "/a", owner + "/+@_-.", owner + "/0", owner + "/-", owner + "/a..b", owner + "/a+b@c", owner + "/index.html",
		owner + "/tmp", owner + "/files", owner + "/" + strings.Repeat(
			"n",
			128,
		), longest + "/" + strings.Repeat("+", 128),
	} {
		files, backup := "files"+key, "backup"+key
		cases = append(cases, testCase{
			"the key " + key + " works", objects{files: one},
			inTurn(duplicate(files, backup), remove(files)), nil, objects{backup: one},
		})
	}
	return cases
}

func concurrencyCases() []testCase {
	return []testCase{
		{
			"one of many creates of a small object wins, whole",
			nil,
			oneCreateWins(1000),
			nil,
			nil,
		},
		{
			"one of many creates of a large object wins, whole",
			nil,
			oneCreateWins(6 * mib),
			nil,
			nil,
		},
		{"64 creates at once all arrive unchanged", nil, createMany, nil, nil},
	}
}

func oneCreateWins(size int) action {
	return func(s *state) error {
		var errs [4]error
		together(4, func(i int) { errs[i] = create("files/k", data{size + i, i})(s) })
		won := slices.Index(errs[:], nil)
		for i, err := range errs {
			if i != won {
				s.wantErr("a create", err, blob.ErrExists)
			}
		}
		s.want = objects{"files/k": {size + won, won}}
		return nil
	}
}

func createMany(s *state) error {
	s.want = objects{}
	var all []action
	for i := range 64 {
		place, d := fmt.Sprint([]string{"files/k", "backup/k"}[i%2], i), data{1001 * i, i}
		s.want[place], all = d, append(all, create(place, d))
	}
	together(64, func(i int) { s.wantErr("a create", all[i](s), nil) })
	return nil
}
