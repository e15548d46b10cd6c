package tabletest

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"ferry/shared/table"
)

func valueTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"every kind of value comes back as it was": valuesComeBack,
		"empty and nil slices come back empty":     emptySlices,
		"text of all sorts comes back":             textComesBack,
		"fields tagged - are not stored":           hiddenFields,
		"an empty struct is an item":               emptyStruct,
		"a large item comes back":                  largeItem,
	}
}

type state string

type inner struct {
	Name  string   `json:"name"`
	Size  int64    `json:"size"`
	Tags  []string `json:"tags,omitempty"`
	Inner *inner   `json:"inner,omitempty"`
}

type base struct {
	Version int `json:"version"`
}

type everything struct {
	base
	String  string   `json:"string"`
	Empty   string   `json:"empty"`
	Omitted string   `json:"omitted,omitempty"`
	State   state    `json:"state"`
	True    bool     `json:"true"`
	False   bool     `json:"false"`
	Int     int      `json:"int"`
	Small   int8     `json:"small"`
	Max     int64    `json:"max"`
	Min     int64    `json:"min"`
	Unsig   uint32   `json:"unsig"`
	Bytes   []byte   `json:"bytes"`
	Strings []string `json:"strings"`
	States  []state  `json:"states"`
	Ints    []int64  `json:"ints"`
	Bools   []bool   `json:"bools"`
	Inner   inner    `json:"inner"`
	Pointer *inner   `json:"pointer,omitempty"`
	Absent  *inner   `json:"absent,omitempty"`
	Inners  []inner  `json:"inners"`
}

func valuesComeBack(t *testing.T, s suite) {
	want := everything{
		base:   base{Version: 3},
		String: "text", State: "active", True: true, Int: -42, Small: math.MinInt8, Max: math.MaxInt64, Min: math.MinInt64,
		Unsig: math.MaxUint32, Bytes: []byte{0, 1, 0xfe, 0xff}, Strings: []string{"b", "", "a", "b"}, States: []state{"x", "y"},
		Ints: []int64{math.MaxInt64, 0, math.MinInt64}, Bools: []bool{true, false, true},
		Inner:   inner{Name: "i", Size: 1 << 40, Tags: []string{"t"}, Inner: &inner{Name: "ii"}},
		Pointer: &inner{Name: "p"},
		Inners:  []inner{{Name: "a", Size: 1}, {Name: "b", Tags: []string{"x", "y"}}},
	}
	s.put("k", want)
	check := func(how string, decode func(any) error) {
		var got everything
		if err := decode(&got); err != nil {
			t.Errorf("%s: %v", how, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", how, got, want)
		}
	}
	check("Get", func(into any) error { return s.Get(t.Context(), s.key("k"), into) })
	check("Query", s.query(table.Query{Limit: 1}).Items[0].Decode)
	check("Update", func(into any) error {
		return s.Update(t.Context(), table.Update(s.key("k")).Set("unrelated", "x"), into)
	})
	check("Get after Update", func(into any) error { return s.Get(t.Context(), s.key("k"), into) })
}

func emptySlices(t *testing.T, s suite) {
	type slices struct {
		Strings []string `json:"strings"`
		Bytes   []byte   `json:"bytes"`
		Ints    []int64  `json:"ints"`
		Inners  []inner  `json:"inners"`
	}
	for name, value := range map[string]slices{
		"nil":   {},
		"empty": {[]string{}, []byte{}, []int64{}, []inner{}},
	} {
		s.put(name, value)
		var got slices
		if err := s.Get(t.Context(), s.key(name), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Strings)+len(got.Bytes)+len(got.Ints)+len(got.Inners) != 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func textComesBack(t *testing.T, s suite) {
	texts := []string{
		"", " ", "null", "true", "7", "{}", "[]", `"quoted"`, `back\slash`, "line\nbreak\r\n\ttab", "<a href='x'>&amp;</a>",
		"\x00\x01\x1f\x7f", "\u2028\u2029", "é", "e\u0301", "文字", "🚢👩‍👩‍👧", "\ufffd", "'; DROP TABLE items; --", strings.Repeat("long ", 2000),
	}
	s.put("k", row{Tags: texts})
	if got := s.get("k").Tags; !reflect.DeepEqual(got, texts) {
		t.Errorf("got %q, want %q", got, texts)
	}
	for i, text := range texts {
		s.put(numbered("k", i), row{Name: text})
		s.write(table.Update(s.key(numbered("k", i))).Set("note", text).If(table.Equal("name", text)))
		if got := s.get(numbered("k", i)); got.Name != text || got.Note != text {
			t.Errorf("got %q and %q, want %q", got.Name, got.Note, text)
		}
	}
}

func hiddenFields(t *testing.T, s suite) {
	type hidden struct {
		Name  string `json:"name"`
		Cache string `json:"-"`
	}
	s.put("k", hidden{Name: "n", Cache: "secret"})
	var got hidden
	if err := s.Get(t.Context(), s.key("k"), &got); err != nil || got != (hidden{Name: "n"}) {
		t.Errorf("got %+v and error %v", got, err)
	}
}

func emptyStruct(t *testing.T, s suite) {
	s.put("k", struct{}{})
	s.wantRow("k", row{})
	s.write(table.Check(s.key("k"), table.Exists()))
}

func largeItem(t *testing.T, s suite) {
	want := row{Name: strings.Repeat("é", 150_000), Count: 1}
	s.put("k", want)
	s.wantRow("k", want)
	want.Count = 2
	if got := s.update(table.Update(s.key("k")).Add("count", 1)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %d bytes and count %d after an update", len(got.Name), got.Count)
	}
}
