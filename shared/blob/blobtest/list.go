package blobtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ferry/shared/blob"
)

func listTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"keys come in the order of their bytes":        listOrder,
		"pages of every size join without gap":         listPages,
		"after is exclusive and need not be a key":     listAfter,
		"objects carry their size and time":            listAttributes,
		"areas are listed apart":                       listAreas,
		"a limit outside the bounds is an error":       listLimits,
		"nothing but objects is listed":                listOnlyObjects,
		"more objects than a page holds are all found": listMany,
	}
}

// names of owners and objects whose order differs from that of folders.
func (s suite) tree() []string {
	var keys []string
	for _, owner := range []string{"a", "a-b", "a.b", "a@b", "a+b", "ab", "a_b", "a0", "A", "B", "a-", "a."} {
		for _, name := range []string{"x", "x-y", "x.y", "X", "0", "x0", "xy"} {
			keys = append(keys, s.owner+owner+"/"+name)
		}
	}
	return keys
}

func listOrder(t *testing.T, s suite) {
	want := s.tree()
	for _, key := range want {
		s.create(blob.Files, key, []byte(key))
	}
	slices.Sort(want)
	if got := keys(s.list(blob.Files)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func keys(objects []blob.Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.Key)
	}
	return all
}

func listPages(t *testing.T, s suite) {
	want := s.tree()[:30]
	for _, key := range want {
		s.create(blob.Files, key, nil)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 2, 7, 29, 30, 31, blob.MaxList} {
		if got := keys(s.listBy(blob.Files, limit)); !slices.Equal(got, want) {
			t.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
	page, err := s.List(t.Context(), blob.Files, s.owner, 5)
	if err != nil || !slices.Equal(keys(page), want[:5]) {
		t.Errorf("got %q and error %v, want %q", keys(page), err, want[:5])
	}
}

func listAfter(t *testing.T, s suite) {
	all := []string{s.key("b"), s.key("d"), s.owner + "0/a"}
	for _, key := range all {
		s.create(blob.Files, key, nil)
	}
	tests := []struct {
		after string
		want  []string
	}{
		{s.owner, all}, {s.owner + "/", all}, {s.key("a"), all}, {s.key("b"), all[1:]}, {s.key("b."), all[1:]}, {s.key("c"), all[1:]},
		{s.key("d"), all[2:]}, {s.key("~"), all[2:]}, {s.owner + "0", all[2:]}, {s.owner + "0/a", nil}, {s.owner + "0/a/a", nil}, {s.owner + "~", nil},
		{s.owner + "-", all}, {s.owner + ".", all},
	}
	for _, tc := range tests {
		page, err := s.List(t.Context(), blob.Files, tc.after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(page); len(got) < len(tc.want) || !slices.Equal(got[:len(tc.want)], tc.want) {
			t.Errorf("after %q: got %q, want %q", tc.after, got, tc.want)
		} else if slices.ContainsFunc(got[len(tc.want):], func(k string) bool { return slices.Contains(all, k) }) {
			t.Errorf("after %q: got %q, want %q alone", tc.after, got, tc.want)
		}
	}
}

// listAttributes allows for a clock of the store that is not this one's.
func listAttributes(t *testing.T, s suite) {
	for _, size := range []int{0, 1, 1000, 6 * mib} {
		s.create(blob.Files, s.key(fmt.Sprintf("size-%08d", size)), content(t, size))
	}
	now := time.Now()
	for i, o := range s.list(blob.Files) {
		if want := []int64{0, 1, 1000, 6 * mib}[i]; o.Size != want {
			t.Errorf("%s has size %d, want %d", o.Key, o.Size, want)
		}
		if o.Modified.Before(now.Add(-time.Hour)) || o.Modified.After(now.Add(time.Hour)) {
			t.Errorf("%s was modified %s, now is %s", o.Key, o.Modified, now)
		}
	}
}

func listAreas(t *testing.T, s suite) {
	s.create(blob.Files, s.key("one"), nil)
	s.create(blob.Backup, s.key("two"), nil)
	for area, want := range map[blob.Area]string{blob.Files: s.key("one"), blob.Backup: s.key("two")} {
		if got := keys(s.list(area)); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %s", area, got, want)
		}
	}
}

func listLimits(t *testing.T, s suite) {
	for _, limit := range []int{0, -1, blob.MaxList + 1} {
		if _, err := s.List(t.Context(), blob.Files, "", limit); err == nil {
			t.Errorf("limit %d: got no error", limit)
		}
	}
}

func listOnlyObjects(t *testing.T, s suite) {
	s.create(blob.Files, s.key("k"), nil)
	s.create(blob.Files, s.owner+"-gone/k", nil)
	s.delete(blob.Files, s.owner+"-gone/k")
	if got := keys(s.list(blob.Files)); !slices.Equal(got, []string{s.key("k")}) {
		t.Errorf("got %q", got)
	}
	page, err := s.List(t.Context(), blob.Files, "", blob.MaxList)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page {
		if err := blob.CheckKey(o.Key); err != nil {
			t.Errorf("listed %q: %v", o.Key, err)
		}
	}
}

func listMany(t *testing.T, s suite) {
	const n = 300
	var want []string
	for i := range n {
		want = append(want, s.key(fmt.Sprintf("k%04d", i)))
	}
	together(8, func(worker int) {
		for i := worker; i < n; i += 8 {
			if _, err := s.Create(t.Context(), blob.Files, want[i], reader(nil), 0); err != nil {
				t.Errorf("creating: %v", err)
			}
		}
	})
	if got := keys(s.listBy(blob.Files, 101)); !slices.Equal(got, want) {
		t.Errorf("got %d keys, want %d", len(got), n)
	}
}
