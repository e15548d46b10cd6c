package tabletest

import (
	"slices"
	"testing"

	"ferry/shared/table"
)

func queryTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"an unknown partition is an empty page":        queryEmpty,
		"items come in the order of their bytes":       queryByteOrder,
		"after is exclusive and need not exist":        queryAfter,
		"more is exact at the limit":                   queryMore,
		"pages join without gap or repetition":         queryPages,
		"a page holds up to 1000 items":                queryFull,
		"items carry their values and keys":            queryValues,
		"sort keys that start alike stay apart":        queryPrefixes,
		"large items may end a page early but not all": queryLarge,
	}
}

func queryEmpty(t *testing.T, s suite) {
	s.write(table.Put(s.other("k"), row{}))
	for _, q := range []table.Query{{Limit: 1}, {Limit: 10, Descending: true}, {Limit: 10, After: "k"}} {
		if page := s.query(q); len(page.Items) != 0 || page.More {
			t.Errorf("%+v: got %d items, more %t", q, len(page.Items), page.More)
		}
	}
}

// byteOrder holds sort keys as they must come.
func byteOrder() []string {
	return []string{
		"\x01", " ", "!", "#", "+", "-", "-1", ".", "/", "0", "00", "01", "1", "10", "2", "9", ":", "@",
		"A", "AB", "Aa", "Z", "_", "a", "aB", "aa", "b", "z", "za", "z~", "~",
		"\u0080", "ß", "ä", "é", "文", "文字", "\ue000", "\uffff", "😀", "🚢",
	}
}

func queryByteOrder(t *testing.T, s suite) {
	want := byteOrder()
	if !slices.IsSorted(want) {
		t.Fatal("the wanted order is not that of the bytes")
	}
	for i := range want {
		s.put(want[(i*7)%len(want)], row{})
	}
	if got := sortKeys(s.query(table.Query{Limit: 100}).Items); !slices.Equal(got, want) {
		t.Errorf("ascending: got %q, want %q", got, want)
	}
	slices.Reverse(want)
	if got := sortKeys(s.query(table.Query{Limit: 100, Descending: true}).Items); !slices.Equal(got, want) {
		t.Errorf("descending: got %q, want %q", got, want)
	}
}

func queryAfter(t *testing.T, s suite) {
	for _, sk := range []string{"b", "d", "f"} {
		s.put(sk, row{})
	}
	tests := []struct {
		after      string
		descending bool
		want       []string
	}{
		{"", false, []string{"b", "d", "f"}},
		{"a", false, []string{"b", "d", "f"}},
		{"b", false, []string{"d", "f"}},
		{"c", false, []string{"d", "f"}},
		{"f", false, nil},
		{"g", false, nil},
		{"", true, []string{"f", "d", "b"}},
		{"g", true, []string{"f", "d", "b"}},
		{"f", true, []string{"d", "b"}},
		{"e", true, []string{"d", "b"}},
		{"b", true, nil},
		{"a", true, nil},
	}
	for _, tc := range tests {
		page := s.query(table.Query{After: tc.after, Descending: tc.descending, Limit: 10})
		if got := sortKeys(page.Items); !slices.Equal(got, tc.want) || page.More {
			t.Errorf("after %q, descending %t: got %q, more %t, want %q", tc.after, tc.descending, got, page.More, tc.want)
		}
	}
}

func queryMore(t *testing.T, s suite) {
	for _, sk := range []string{"a", "b", "c", "d", "e"} {
		s.put(sk, row{})
	}
	tests := []struct {
		after string
		desc  bool
		limit int
		want  int
		more  bool
	}{
		{"", false, 1, 1, true}, {"", false, 4, 4, true}, {"", false, 5, 5, false}, {"", false, 6, 5, false},
		{"", false, table.MaxPage, 5, false},
		{"a", false, 3, 3, true}, {"a", false, 4, 4, false}, {"d", false, 1, 1, false}, {"e", false, 1, 0, false},
		{"", true, 4, 4, true}, {"", true, 5, 5, false}, {"c", true, 1, 1, true}, {"c", true, 2, 2, false},
		{"b", true, 1, 1, false}, {"a", true, 1, 0, false},
	}
	for _, tc := range tests {
		page := s.query(table.Query{After: tc.after, Descending: tc.desc, Limit: tc.limit})
		if len(page.Items) != tc.want || page.More != tc.more {
			t.Errorf("%+v: got %d items, more %t", tc, len(page.Items), page.More)
		}
	}
}

func queryPages(t *testing.T, s suite) {
	var want []string
	for i := range 23 {
		want = append(want, numbered("k", i))
		s.put(want[i], row{})
	}
	for _, descending := range []bool{false, true} {
		for _, limit := range []int{1, 2, 5, 22, 23, 24} {
			if got := s.pages(limit, descending); !slices.Equal(got, want) {
				t.Errorf("limit %d, descending %t: got %q", limit, descending, got)
			}
		}
		slices.Reverse(want)
	}
}

// pages reads the whole partition, limit items at a time, and stops when a
// page says that there are no more.
func (s suite) pages(limit int, descending bool) []string {
	s.Helper()
	var all []string
	q := table.Query{Limit: limit, Descending: descending}
	for range 1000 {
		page := s.query(q)
		all = append(all, sortKeys(page.Items)...)
		if !page.More {
			return all
		}
		if len(page.Items) == 0 {
			s.Fatal("an empty page said that there is more")
		}
		q.After = all[len(all)-1]
	}
	s.Fatal("paging does not end")
	return nil
}

func queryFull(t *testing.T, s suite) {
	s.fill(table.MaxPage + 1)
	page := s.query(table.Query{Limit: table.MaxPage})
	if len(page.Items) != table.MaxPage || !page.More {
		t.Errorf("got %d items, more %t, want %d and more", len(page.Items), page.More, table.MaxPage)
	}
	page = s.query(table.Query{Limit: table.MaxPage, After: numbered("k", 0)})
	if len(page.Items) != table.MaxPage || page.More {
		t.Errorf("got %d items, more %t, want %d and no more", len(page.Items), page.More, table.MaxPage)
	}
}

// fill puts n items k0000, k0001, ..., each with its number as count.
func (s suite) fill(n int) {
	s.Helper()
	for start := 0; start < n; start += table.MaxOps {
		var ops []table.Op
		for i := start; i < min(n, start+table.MaxOps); i++ {
			ops = append(ops, table.Put(s.key(numbered("k", i)), row{Count: int64(i)}))
		}
		s.write(ops...)
	}
}

func queryValues(t *testing.T, s suite) {
	s.fill(120)
	for i, item := range s.query(table.Query{Limit: 120}).Items {
		if want := s.key(numbered("k", i)); item.Key != want || !item.Found() {
			t.Errorf("item %d has key %s and Found %t, want %s", i, item.Key, item.Found(), want)
		}
		if got := s.decode(item).Count; got != int64(i) {
			t.Errorf("item %d has count %d", i, got)
		}
	}
}

func queryPrefixes(t *testing.T, s suite) {
	s.write(
		table.Put(table.Key{PK: s.pk + "a", SK: "b"}, row{Name: "a-b"}),
		table.Put(table.Key{PK: s.pk, SK: "ab"}, row{Name: "ab"}),
		table.Put(table.Key{PK: s.pk + "A", SK: "b"}, row{Name: "A-b"}),
	)
	for suffix, want := range map[string]string{"a": "a-b", "": "ab", "A": "A-b"} {
		page := s.query(table.Query{PK: s.pk + suffix, Limit: 10})
		if len(page.Items) != 1 || s.decode(page.Items[0]).Name != want {
			t.Errorf("partition with suffix %q: got %d items, want one named %s", suffix, len(page.Items), want)
		}
	}
}

func queryLarge(t *testing.T, s suite) {
	var want []string
	for i := range 5 {
		want = append(want, numbered("k", i))
		s.put(want[i], row{Name: fill(300_000)})
	}
	if got := s.pages(10, false); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
