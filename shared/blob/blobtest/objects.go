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
	store, toBackup := create("files/k", one), duplicate("files/k", "backup/k")
	cases := []testCase{
		{"a copy stays when the original is deleted", inFiles, inTurn(toBackup, remove("files/k")), nil, inBackup},
		{"an object stays when its copy is deleted", inFiles, inTurn(toBackup, remove("backup/k")), nil, inFiles},
		{"a copy is unchanged when the original's key is used again", inFiles,
			inTurn(toBackup, remove("files/k"), create("files/k", two)), nil, objects{"files/k": two, "backup/k": one}},
		{"a copy of a missing object is ErrNotFound", inBackup, duplicate("files/k", "backup/new"), blob.ErrNotFound, nil},
		{"a copy can be repeated", inFiles, inTurn(toBackup, toBackup, toBackup), nil, inBoth},
		{"a delete removes only its object", pairs, remove("files/k"), nil,
			objects{"files/k2": one, "backup/k": two, "backup/k2": two}},
		{"deleting twice is no error", inFiles, inTurn(remove("files/k"), remove("files/k")), nil, objects{}},
		{"what is set aside is gone, and nothing else", pairs, inTurn(setAside("files/k"), setAside("files/k")), nil,
			objects{"files/k2": one, "backup/k": two, "backup/k2": two}},
		{"a large object is set aside", objects{"files/k": {20 * mib, 1}}, setAside("files/k"), nil, objects{}},
		{"deleting what never existed is no error", inFiles,
			inTurn(remove("files/never"), remove("backup-never/never")), nil, inFiles},
		{"an owner can have objects again after the last was deleted", inFiles,
			inTurn(remove("files/k"), store, remove("files/k"), store, remove("files/k")), nil, objects{}},
	}
	large := data{20 * mib, 1}
	for _, span := range [][2]int{{0, 1}, {100, 6 * mib}, {mib + 1, 19*mib - 1}, {0, 20 * mib}} {
		cases = append(cases, testCase{
			fmt.Sprintf("a copy of the range of %d bytes from %d is whole, and can be repeated", span[1], span[0]), objects{"files/k": large},
			copiesRange("files/k", large, span[0], span[1]), nil, objects{"files/k": large},
		})
	}
	cases = append(cases, testCase{"a copy of a range of a missing object is ErrNotFound", objects{}, missingRange, nil, nil})
	for _, size := range []int{0, 100, 20 * mib} {
		d := data{size, 1}
		cases = append(cases, testCase{
			fmt.Sprintf("a copy of %d bytes is whole, both ways, and the original stays", size), objects{"files/a": d},
			inTurn(duplicate("files/a", "backup/b"), duplicate("backup/b", "files.other/c"), looksAt("backup/a")), nil,
			objects{"files/a": d, "backup/b": d, "files.other/c": d},
		})
	}
	return cases
}

// copiesRange copies a range twice, or finds that the store cannot. The copy is removed in the end.
func copiesRange(place string, d data, off, n int) action {
	return func(s *state) error {
		area, key := s.at(place)
		_, to := s.at("files/range")
		for range 2 {
			err := s.CopyRange(s.Context(), area, key, int64(off), int64(n), to)
			if errors.Is(err, blob.ErrUnsupported) {
				return nil
			}
			s.must(err)
			r, err := s.Open(s.Context(), area, to)
			s.must(err)
			got, err := io.ReadAll(r)
			s.must(errors.Join(err, r.Close()))
			if !bytes.Equal(got, d.bytes()[off:off+n]) {
				s.Errorf("the copy has %d other bytes", len(got))
			}
		}
		return s.Delete(s.Context(), area, to)
	}
}

func missingRange(s *state) error {
	_, key := s.at("files/k")
	_, to := s.at("files/range")
	err := s.CopyRange(s.Context(), blob.Files, key, 0, 1, to)
	if !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrUnsupported) {
		s.Errorf("the error is %v", err)
	}
	return nil
}

func listCases() []testCase {
	few := objects{"files/b": {0, 1}, "files/d": {100_000, 1}, "files0/a": {1000, 1}, "backup/e": {6 * mib, 1}}
	return []testCase{
		{"keys are sorted by their bytes", tree(84), lists(1, 7, 84, blob.MaxList), nil, nil},
		{"a page begins and ends where the call says, in its area", few, lists(1, 2, 3, 4), nil, nil},
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
		s.Errorf("after %q, limit %d: got %q of %d, want %q", after, limit, got, len(page), want)
	}
}

func keyCases() []testCase {
	const owner = "+user@example.org_-."
	longest := strings.Repeat("o", 128-len("test-ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	one := data{100, 1}
	cases := []testCase{
		{"keys that differ only in case stay apart",
			objects{"files/k": {1, 1}, "files/K": {1, 2}, "filesX/k": {1, 3}, "filesx/k": {1, 4}}, nothing, nil, nil},
	}
	for _, key := range []string{
		owner + "/a", owner + "/+@_-.", owner + "/0", owner + "/-", owner + "/a..b", owner + "/a+b@c", owner + "/index.html",
		owner + "/tmp", owner + "/files", owner + "/" + strings.Repeat("n", 128), longest + "/" + strings.Repeat("+", 128),
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
		{"one of many creates of a small object wins, whole", nil, oneCreateWins(1000), nil, nil},
		{"one of many creates of a large object wins, whole", nil, oneCreateWins(6 * mib), nil, nil},
		{"64 creates at once all arrive unchanged", nil, createMany, nil, nil},
		{"creates and deletes for one owner do not collide", nil, createsAndDeletes, nil, nil},
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

// createsAndDeletes keeps filling and emptying owners, so that a store that removes empty
// folders does so while others create in them.
func createsAndDeletes(s *state) error {
	together(8, func(i int) {
		place := fmt.Sprintf("files-%d/k%d", i%2, i)
		for range 20 {
			s.wantErr("a create", create(place, data{100, i})(s), nil)
			s.wantErr("a delete", remove(place)(s), nil)
		}
	})
	return nil
}
