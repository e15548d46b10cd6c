package tabletest

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"ferry/shared/table"
)

func updateTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"set and add create a missing item":               updateCreates,
		"set and add leave other attributes alone":        updateKeepsOthers,
		"add to a missing attribute starts at 0":          addFromMissing,
		"add takes negative numbers and 0":                addNegative,
		"add is exact at the ends of int64":               addExtremes,
		"add to an attribute of another type is an error": addToOtherType,
		"set takes every kind of value":                   setKinds,
		"several changes happen at once":                  severalChanges,
		"update returns the item as it is afterwards":     updateReturnsAfter,
		"a refused update changes nothing":                updateRefused,
		"attribute names need no care":                    attributeNames,
		"delayed updates all arrive":                      delayedArrive,
		"a delayed update of nothing makes nothing":       delayedRefused,
	}
}

func (s suite) update(op table.Op) row {
	s.Helper()
	var r row
	if err := s.Table.Update(s.Context(), op, &r); err != nil {
		s.Fatalf("updating %s: %v", op.Key, err)
	}
	return r
}

func updateCreates(t *testing.T, s suite) {
	s.write(table.Update(s.key("a")).Set("name", "x"), table.Update(s.key("b")).Add("count", 4))
	s.wantRow("a", row{Name: "x"})
	s.wantRow("b", row{Count: 4})
	if got := s.update(table.Update(s.key("c")).Set("done", true)); !reflect.DeepEqual(got, row{Done: true}) {
		t.Errorf("got %+v", got)
	}
	err := s.Update(t.Context(), table.Update(s.key("d")).Set("name", "x").If(table.Exists()), &row{})
	s.wantRefused(err, 0)
	s.wantMissing("d")
	if got := sortKeys(s.query(table.Query{Limit: 10}).Items); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("the partition has %q", got)
	}
}

func updateKeepsOthers(t *testing.T, s suite) {
	s.put("k", row{Name: "n", Count: 1, Done: true, Note: "x", Tags: []string{"a"}})
	s.write(table.Update(s.key("k")).Set("note", "y"))
	s.write(table.Update(s.key("k")).Add("count", 2))
	s.wantRow("k", row{Name: "n", Count: 3, Done: true, Note: "y", Tags: []string{"a"}})
}

func addFromMissing(t *testing.T, s suite) {
	s.put("k", struct {
		Name string `json:"name"`
	}{"n"})
	if got := s.update(table.Update(s.key("k")).Add("count", 5)); got.Count != 5 || got.Name != "n" {
		t.Errorf("got %+v, want count 5", got)
	}
	if got := s.update(table.Update(s.key("new")).Add("count", -5)); got.Count != -5 {
		t.Errorf("got %+v, want count -5", got)
	}
}

func addNegative(t *testing.T, s suite) {
	s.put("k", row{Count: 3})
	for _, step := range []struct{ add, want int64 }{{-1, 2}, {-5, -3}, {0, -3}, {3, 0}} {
		if got := s.update(table.Update(s.key("k")).Add("count", step.add)); got.Count != step.want {
			t.Errorf("after adding %d count is %d, want %d", step.add, got.Count, step.want)
		}
	}
}

func addExtremes(t *testing.T, s suite) {
	s.put("k", row{Count: math.MaxInt64 - 1})
	if got := s.update(table.Update(s.key("k")).Add("count", 1)); got.Count != math.MaxInt64 {
		t.Errorf("got %d, want the largest int64", got.Count)
	}
	if got := s.update(table.Update(s.key("k")).Add("count", math.MinInt64)); got.Count != -1 {
		t.Errorf("got %d, want -1", got.Count)
	}
	if got := s.update(table.Update(s.key("k")).Add("count", math.MinInt64+1)); got.Count != math.MinInt64 {
		t.Errorf("got %d, want the smallest int64", got.Count)
	}
}

func addToOtherType(t *testing.T, s suite) {
	want := row{Name: "7", Done: true, Tags: []string{"a"}}
	s.put("k", want)
	for _, attr := range []string{"name", "done", "tags"} {
		s.wantError(s.Update(t.Context(), table.Update(s.key("k")).Add(attr, 1), &row{}))
		s.wantError(s.Write(t.Context(), table.Put(s.key("b"), row{}), table.Update(s.key("k")).Add(attr, 1)))
	}
	s.wantRow("k", want)
	s.wantMissing("b")
}

func setKinds(t *testing.T, s suite) {
	type named string
	s.put("k", row{Name: "old", Count: 1, Tags: []string{"old"}})
	var got struct {
		S     string   `json:"s"`
		Empty string   `json:"empty"`
		Named named    `json:"named"`
		Yes   bool     `json:"yes"`
		No    bool     `json:"no"`
		I     int      `json:"i"`
		I64   int64    `json:"i64"`
		U     uint32   `json:"u"`
		List  []string `json:"list"`
		Ints  []int64  `json:"ints"`
		Flags []bool   `json:"flags"`
		None  []string `json:"none"`
		Count string   `json:"count"`
	}
	op := table.Update(s.key("k")).
		Set("s", "é🚢\"\\\n\x00").Set("empty", "").Set("named", named("n")).Set("yes", true).Set("no", false).
		Set("i", -7).Set("i64", int64(math.MinInt64)).Set("u", uint32(math.MaxUint32)).
		Set("list", []string{"", "b"}).Set("ints", []int64{math.MaxInt64, 0}).Set("flags", []bool{true, false}).
		Set("none", []string{}).Set("count", "another type")
	if err := s.Update(t.Context(), op, &got); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), s.key("k"), &got); err != nil {
		t.Fatal(err)
	}
	ok := got.S == "é🚢\"\\\n\x00" && got.Empty == "" && got.Named == "n" && got.Yes && !got.No && got.I == -7 &&
		got.I64 == math.MinInt64 && got.U == math.MaxUint32 && reflect.DeepEqual(got.List, []string{"", "b"}) &&
		reflect.DeepEqual(got.Ints, []int64{math.MaxInt64, 0}) && reflect.DeepEqual(got.Flags, []bool{true, false}) &&
		len(got.None) == 0 && got.Count == "another type"
	if !ok {
		t.Errorf("got %+v", got)
	}
	s.write(table.Check(s.key("k"), table.Equal("empty", ""), table.Equal("no", false)))
}

func severalChanges(t *testing.T, s suite) {
	s.put("k", row{Name: "n", Count: 1, Note: "x"})
	got := s.update(table.Update(s.key("k")).Set("name", "m").Add("count", 10).Set("done", true).Set("tags", []string{"t"}).Add("other", 1))
	want := row{Name: "m", Count: 11, Done: true, Note: "x", Tags: []string{"t"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.wantRow("k", want)
	s.write(table.Check(s.key("k"), table.Equal("other", int64(1))))
}

func updateReturnsAfter(t *testing.T, s suite) {
	s.put("k", row{Name: "n", Count: 1})
	if got := s.update(table.Update(s.key("k")).Add("count", 1)); !reflect.DeepEqual(got, row{Name: "n", Count: 2}) {
		t.Errorf("got %+v", got)
	}
	var narrow struct {
		Name string `json:"name"`
	}
	if err := s.Update(t.Context(), table.Update(s.key("k")).Set("note", "x"), &narrow); err != nil || narrow.Name != "n" {
		t.Errorf("got %+v and error %v", narrow, err)
	}
}

func updateRefused(t *testing.T, s suite) {
	want := row{Name: "n", Count: 1}
	s.put("k", want)
	got := row{Name: "before"}
	err := s.Update(t.Context(), table.Update(s.key("k")).Set("name", "x").Add("count", 1).If(table.AtMost("count", 0)), &got)
	if s.wantRefused(err, 0); errors.Is(err, table.ErrNotFound) {
		t.Errorf("the refused condition is also ErrNotFound: %v", err)
	}
	s.wantRow("k", want)
}

// attributeNames uses names that mean something in query languages.
func attributeNames(t *testing.T, s suite) {
	type reserved struct {
		Size   int64  `json:"size"`
		Status string `json:"status"`
		Key    string `json:"key"`
		Dotted int64  `json:"a.b"`
		Dashed int64  `json:"a-b"`
		Select string `json:"select"`
		Under  string `json:"_x"`
		Number string `json:"1st"`
		Doc    string `json:"doc"`
	}
	want := reserved{1, "a", "b", 2, 3, "c", "d", "e", "f"}
	s.put("k", want)
	op := table.Update(s.key("k")).Add("size", 1).Set("status", "A").Set("key", "B").Add("a.b", 1).Add("a-b", 1).
		Set("select", "C").Set("_x", "D").Set("1st", "E").Set("doc", "F").
		If(table.Equal("size", int64(1)), table.Equal("status", "a"), table.Equal("key", "b"), table.AtMost("a.b", 2),
			table.AtMost("a-b", 3), table.Equal("select", "c"), table.Equal("_x", "d"), table.Equal("1st", "e"), table.Equal("doc", "f"))
	var got reserved
	if err := s.Update(t.Context(), op, &got); err != nil {
		t.Fatal(err)
	}
	if want = (reserved{2, "A", "B", 3, 4, "C", "D", "E", "F"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func delayedArrive(t *testing.T, s suite) {
	s.put("a", row{Name: "kept"})
	const n = 500
	for i := range n {
		s.write(table.Update(s.key("a")).Add("count", 1).Set("done", i == n-1).If(table.Exists()).Delay())
	}
	s.write(table.Update(s.key("a")).Set("note", "of another form").Delay())
	want := row{Name: "kept", Count: n, Done: true, Note: "of another form"}
	var got row
	for range 1000 {
		if err := s.Get(t.Context(), s.key("a"), &got); err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(got, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("got %+v, want %+v", got, want)
}

func delayedRefused(t *testing.T, s suite) {
	err := s.Table.Write(t.Context(), table.Update(s.key("a")).Add("count", 1).If(table.Exists()).Delay())
	if err != nil && !errors.Is(err, table.ErrCondition) {
		t.Fatal(err)
	}
	s.put("b", row{})
	for range 100 { // until one that came later is there
		s.write(table.Update(s.key("b")).Add("count", 1).If(table.Exists()).Delay())
		var b row
		if err := s.Get(t.Context(), s.key("b"), &b); err != nil {
			t.Fatal(err)
		}
		if b.Count > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.wantMissing("a")
}
