package tabletest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"ferry/shared/table"
)

func readTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"get returns what was put":                               getReturnsPut,
		"get of a missing item is ErrNotFound":                   getMissing,
		"get ignores attributes the struct does not have":        getIgnoresUnknown,
		"partitions do not share sort keys":                      partitionsAreApart,
		"keys of full length and any script work":                keysOfAllKinds,
		"getmany keeps the order of the keys":                    getManyOrder,
		"getmany takes the same key twice, present or missing":   getManyDuplicates,
		"getmany takes 100 keys":                                 getManyFull,
		"getmany of no keys is empty":                            getManyNone,
		"an item decodes more than once":                         decodeTwice,
		"a missing item leaves the struct alone":                 decodeMissing,
		"scan sees every item once":                              scanSeesAll,
		"scan stops with the error of yield":                     scanStops,
		"scanned items stay good after the scan":                 scanKeeps,
		"every read sees the write that was answered before it":  readsSeeWrites,
		"every read sees the update that was answered before it": readsSeeUpdates,
	}
}

func getReturnsPut(t *testing.T, s suite) {
	want := row{Name: "n", Count: 7, Done: true, Note: "x", Tags: []string{"a", "b"}}
	s.put("k", want)
	s.wantRow("k", want)
}

func getMissing(t *testing.T, s suite) {
	s.put("k", row{Name: "n"})
	s.wantMissing("K", "k0", "j")
	got := row{Name: "before"}
	if err := s.Get(t.Context(), s.other("k"), &got); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
	if got.Name != "before" {
		t.Errorf("the struct became %+v", got)
	}
}

func getIgnoresUnknown(t *testing.T, s suite) {
	s.put("k", row{Name: "n", Count: 3, Tags: []string{"a"}})
	var narrow struct {
		Count int64 `json:"count"`
	}
	if err := s.Get(t.Context(), s.key("k"), &narrow); err != nil || narrow.Count != 3 {
		t.Errorf("got %+v and error %v, want count 3", narrow, err)
	}
}

func partitionsAreApart(t *testing.T, s suite) {
	s.write(table.Put(s.key("k"), row{Name: "one"}), table.Put(s.other("k"), row{Name: "two"}))
	s.write(table.Delete(s.key("k")))
	s.wantMissing("k")
	var r row
	if err := s.Get(t.Context(), s.other("k"), &r); err != nil || r.Name != "two" {
		t.Errorf("got %+v and error %v, want two", r, err)
	}
}

func keysOfAllKinds(t *testing.T, s suite) {
	longPK := s.pk + fill(2048-len(s.pk))
	keys := []table.Key{
		{PK: longPK, SK: fill(1024)},
		s.key("a b#c/d\\e'\"%_?*"),
		s.key("Ünïcode 文字 🚢"),
		s.key("\x01 control \x1f"),
		{PK: s.pk + " 文字 '\"", SK: "k"},
	}
	for i, k := range keys {
		s.write(table.Put(k, row{Count: int64(i)}))
	}
	for i, k := range keys {
		var r row
		if err := s.Get(t.Context(), k, &r); err != nil || r.Count != int64(i) {
			t.Errorf("key %d: got %+v and error %v", i, r, err)
		}
		page := s.query(table.Query{PK: k.PK, Limit: 10})
		found := false
		for _, item := range page.Items {
			found = found || item.Key == k
		}
		if !found {
			t.Errorf("key %d is not among those of its partition", i)
		}
	}
}

func getManyOrder(t *testing.T, s suite) {
	for _, sk := range []string{"a", "b", "c"} {
		s.put(sk, row{Name: sk})
	}
	keys := []table.Key{s.key("c"), s.key("none"), s.key("a"), s.other("b"), s.key("b")}
	items, err := s.GetMany(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	s.wantItems(items, keys, "c", "", "a", "", "b")
}

func getManyDuplicates(t *testing.T, s suite) {
	s.put("a", row{Name: "a"})
	keys := []table.Key{s.key("none"), s.key("a"), s.key("none"), s.key("a")}
	items, err := s.GetMany(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	s.wantItems(items, keys, "", "a", "", "a")
}

func getManyFull(t *testing.T, s suite) {
	keys := make([]table.Key, table.MaxKeys)
	names := make([]string, table.MaxKeys)
	for i := range keys {
		keys[i] = s.key(numbered("k", table.MaxKeys-i))
		if i%3 != 0 {
			names[i] = keys[i].SK
			s.write(table.Put(keys[i], row{Name: names[i]}))
		}
	}
	items, err := s.GetMany(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	s.wantItems(items, keys, names...)
}

func getManyNone(t *testing.T, s suite) {
	items, err := s.GetMany(t.Context())
	if err != nil || len(items) != 0 {
		t.Errorf("got %d items and error %v, want none", len(items), err)
	}
}

// wantItems compares items with the wanted keys and names; an empty name
// stands for a missing item.
func (s suite) wantItems(items []table.Item, keys []table.Key, names ...string) {
	s.Helper()
	if len(items) != len(keys) {
		s.Fatalf("got %d items, want %d", len(items), len(keys))
	}
	for i, item := range items {
		if item.Key != keys[i] {
			s.Errorf("item %d has key %s, want %s", i, item.Key, keys[i])
		}
		if item.Found() != (names[i] != "") {
			s.Errorf("item %d: Found is %t", i, item.Found())
			continue
		}
		if item.Found() && s.decode(item).Name != names[i] {
			s.Errorf("item %d is %+v, want name %s", i, s.decode(item), names[i])
		}
	}
}

func decodeTwice(t *testing.T, s suite) {
	want := row{Name: "n", Tags: []string{"a"}}
	s.put("k", want)
	item := s.query(table.Query{Limit: 1}).Items[0]
	first, second := s.decode(item), s.decode(item)
	if !reflect.DeepEqual(first, want) || !reflect.DeepEqual(second, want) {
		t.Errorf("got %+v, then %+v, want %+v", first, second, want)
	}
}

func decodeMissing(t *testing.T, s suite) {
	items, err := s.GetMany(t.Context(), s.key("none"))
	if err != nil {
		t.Fatal(err)
	}
	r := row{Name: "before"}
	if err := items[0].Decode(&r); !errors.Is(err, table.ErrNotFound) || r.Name != "before" {
		t.Errorf("got %+v and error %v, want ErrNotFound and the struct as it was", r, err)
	}
}

func scanSeesAll(t *testing.T, s suite) {
	want := map[table.Key]string{}
	for i := range 50 {
		for _, k := range []table.Key{s.key(numbered("k", i)), s.other(numbered("k", i))} {
			want[k] = fmt.Sprint(k.PK == s.pk, i)
			s.write(table.Put(k, row{Name: want[k]}))
		}
	}
	s.write(table.Delete(s.key(numbered("k", 9))))
	delete(want, s.key(numbered("k", 9)))
	got := map[table.Key]string{}
	err := s.Scan(t.Context(), func(item table.Item) error {
		if item.Key.PK != s.pk && item.Key.PK != s.pk+"#other" {
			return nil
		}
		if _, ok := got[item.Key]; ok {
			t.Errorf("%s came twice", item.Key)
		}
		got[item.Key] = s.decode(item).Name
		return nil
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got error %v and %d items %v, want %d: %v", err, len(got), got, len(want), want)
	}
}

func scanStops(t *testing.T, s suite) {
	for i := range 5 {
		s.put(numbered("k", i), row{})
	}
	stop, calls := errors.New("stop"), 0
	err := s.Scan(t.Context(), func(table.Item) error {
		if calls++; calls == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || calls != 2 {
		t.Errorf("got error %v after %d calls, want stop after 2", err, calls)
	}
}

func scanKeeps(t *testing.T, s suite) {
	for i := range 20 {
		s.put(numbered("k", i), row{Name: numbered("k", i)})
	}
	var kept []table.Item
	err := s.Scan(t.Context(), func(item table.Item) error {
		if item.Key.PK == s.pk {
			kept = append(kept, item)
		}
		return nil
	})
	if err != nil || len(kept) != 20 {
		t.Fatalf("got %d items and error %v, want 20", len(kept), err)
	}
	for _, item := range kept {
		if got := s.decode(item).Name; got != item.Key.SK {
			t.Errorf("%s decodes to %s", item.Key, got)
		}
	}
}

func readsSeeWrites(t *testing.T, s suite) {
	for i := range 40 {
		want := numbered("v", i)
		s.put("k", row{Name: want})
		many, err := s.GetMany(t.Context(), s.key("k"))
		if err != nil {
			t.Fatal(err)
		}
		one, page := s.get("k").Name, s.query(table.Query{Limit: 1})
		if got := s.decode(many[0]).Name; one != want || got != want || s.decode(page.Items[0]).Name != want {
			t.Fatalf("after writing %s, Get read %s, GetMany %s, Query %s", want, one, got, s.decode(page.Items[0]).Name)
		}
	}
	s.write(table.Delete(s.key("k")))
	s.wantMissing("k")
	if page := s.query(table.Query{Limit: 1}); len(page.Items) != 0 {
		t.Error("Query still sees the deleted item")
	}
}

func readsSeeUpdates(t *testing.T, s suite) {
	for i := range 40 {
		var r row
		if err := s.Update(t.Context(), table.Update(s.key("k")).Add("count", 1), &r); err != nil {
			t.Fatal(err)
		}
		if got := s.get("k").Count; got != int64(i+1) {
			t.Fatalf("read %d after update %d", got, i+1)
		}
	}
}

func fill(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}
