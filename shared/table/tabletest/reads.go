package tabletest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ferry/shared/table"
)

func readCases() []testCase {
	full := items{"k": {Name: "n", Count: 7, Done: true, Note: "x", Tags: []string{"a", "b"}}}
	larges := items{}
	for _, sk := range numbered(5) {
		larges[sk] = row{Note: long(300_000)}
	}
	// The longest keys that fit behind the partition's random name.
	longest := long(2048-len("test#ABCDEFGHIJKLMNOPQRSTUVWXYZ")) + "|" + long(1024)
	return []testCase{
		{"Get, GetMany and Query return what was put", full, nothing, done, nil},
		{
			"items are sorted by the bytes of their sort keys",
			named(byteOrder()...),
			nothing,
			done,
			nil,
		},
		{
			"the same sort key in two partitions is two items",
			named("k", "x|k"),
			ops(remove("k")),
			done,
			named("x|k"),
		},
		{
			"keys that are the same when joined stay apart",
			named("ab", "a|b", "A|b"),
			nothing,
			done,
			nil,
		},
		{"the longest keys work", named(longest), nothing, done, nil},
		{"keys in any script work",
			named(
				"a b#c/d\\e'\"%_?*",
				"Ünïcode 文字 🚢",
				"\x01 control \x1f",
				" 文字 '\"|k",
			), nothing, done, nil},
		{"large items may end a page early, but all are returned", larges, nothing, done, nil},
		{
			"a missing item is ErrNotFound and leaves the struct unchanged",
			named("k"),
			getMissing,
			done,
			nil,
		},
		{
			"an item can be decoded more than once, into any struct that fits",
			full,
			decodeTwice,
			done,
			nil,
		},
		{"an unknown partition is an empty page", named("x|b"), queries(1, 10), done, nil},
		{
			"a page begins and ends where the query says",
			named("b", "d", "f"),
			queries(1, 2, 3, 4, table.MaxPage),
			done,
			nil,
		},
		{
			"a page holds up to 1000 items", named(numbered(table.MaxPage + 1)...), fullPage, done,
			nil,
		},
		{"a write returns the page of its query", named("a", "b"), readBack, done,
			items{"a": {Name: "a", Count: 7}, "c": {Name: "c"}, "d": {Name: "d"}}},
		{
			"a scan yields each item once, and it can be kept",
			named(append(numbered(300), "x|k")...),
			scanAll,
			done,
			nil,
		},
		{
			"a scan stops with the error of its function",
			named("a", "b", "c"),
			scanStops,
			done,
			nil,
		},
	}
}

// byteOrder returns sort keys in order.
func byteOrder() []string {
	return []string{
		"\x01", " ", "#", "-", "-1", "/", "0", "00", "1", "10", "2", ":", "A", "AB", "Aa", "Z", "_", "a", "aB", "z~", "~",
		"\u0080", "ß", "é", "文", "文字", "\ue000", "\uffff", "😀",
	}
}

func getMissing(s *state) error {
	for _, sk := range []string{"K", "k0", "j", "x|k"} {
		got := row{Name: "before"}
		s.wantErr("Get", s.Get(s.Context(), s.key(sk), &got), kind(table.ErrNotFound))
		many, err := s.GetMany(s.Context(), s.key(sk))
		s.must(err)
		s.wantErr("Decode", many[0].Decode(&got), kind(table.ErrNotFound))
		if got.Name != "before" {
			s.Errorf("the struct became %+v", got)
		}
	}
	none, err := s.GetMany(s.Context())
	if len(none) != 0 {
		s.Errorf("no keys return %d items", len(none))
	}
	return err
}

func decodeTwice(s *state) error {
	for how, decode := range s.reads("k") {
		var narrow struct {
			Count int64 `json:"count"`
		}
		var odd struct {
			Name int64 `json:"name"`
		}
		s.must(decode(&narrow))
		s.wantErr(how, decode(&odd), kind(table.ErrUnreadable))
		if s.wantItem(how, "k", decode); narrow.Count != 7 {
			s.Errorf("%s returns %+v", how, narrow)
		}
	}
	return nil
}

// queries reads pages that begin at, before and after every item, in both directions.
func queries(limits ...int) action {
	return func(s *state) error {
		places := []string{"", "\x01"}
		for sk := range s.want {
			places = append(places, s.key(sk).SK, s.key(sk).SK+"-")
		}
		for _, after := range places {
			for _, limit := range limits {
				s.wantPage(table.Query{PK: s.pk, Limit: limit, After: after})
				s.wantPage(table.Query{PK: s.pk, Limit: limit, After: after, Descending: true})
			}
		}
		return nil
	}
}

func (s *state) wantPage(q table.Query) {
	s.Helper()
	var want []string
	for _, sk := range slices.Sorted(maps.Keys(s.own())) {
		if q.After == "" || sk != q.After && sk < q.After == q.Descending {
			want = append(want, sk)
		}
	}
	if q.Descending {
		slices.Reverse(want)
	}
	page, err := s.Query(s.Context(), q)
	s.must(err)
	s.wantItems(fmt.Sprintf("%+v", q), page.Items, want[:min(len(want), q.Limit)])
	if page.More != (len(want) > q.Limit) {
		s.Errorf("%+v, of %d items: more is %t", q, len(want), page.More)
	}
}

func fullPage(s *state) error {
	s.wantPage(table.Query{PK: s.pk, Limit: table.MaxPage})
	s.wantPage(table.Query{PK: s.pk, Limit: table.MaxPage, After: "k0000"})
	return nil
}

func readBack(s *state) error {
	q := table.Query{PK: s.pk, Descending: true, Limit: 2}
	page, err := s.WriteThenQuery(s.Context(), q, s.inPartition([]table.Op{
		put("c", row{Name: "c"}), put("d", row{Name: "d"}), remove("b"), update("a").
			Add("count", 7),
	})...)
	if s.wantItems("WriteThenQuery", page.Items, []string{"d", "c"}); !page.More {
		s.Error("the page does not say that more follow")
	}
	return err
}

// scanAll decodes the items after the scan has ended.
func scanAll(s *state) error {
	delete(s.want, "k0049")
	s.must(s.write(remove("k0049")))
	var own []table.Item
	err := s.Scan(s.Context(), func(item table.Item) error {
		if strings.HasPrefix(item.Key.PK, s.pk) {
			own = append(own, item)
		}
		return nil
	})
	slices.SortFunc(own, func(a, b table.Item) int {
		return strings.Compare(a.Key.String(), b.Key.String())
	})
	s.wantItems("Scan", own, slices.Sorted(maps.Keys(s.want)))
	return err
}

func scanStops(s *state) error {
	stop, calls := errors.New("stop"), 0
	err := s.Scan(s.Context(), func(table.Item) error {
		if calls++; calls == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || calls != 2 {
		s.Errorf("got error %v after %d calls, want stop after 2", err, calls)
	}
	return nil
}
