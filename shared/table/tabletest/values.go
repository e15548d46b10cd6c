package tabletest

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"ferry/shared/table"
)

func valueCases() []testCase {
	large := row{Name: strings.Repeat("é", 150_000)}
	counted := row{Name: large.Name, Count: 1}
	cases := []testCase{
		{"values of every type come back unchanged", nil, valuesComeBack, done, nil},
		{"nil and empty slices come back empty", nil, emptySlices, done, nil},
		{
			"a large item can be updated", items{"k": large}, ops(update("k").Add("count", 1)),
			done, items{"k": counted},
		},
		{
			"texts in a list come back unchanged", nil, ops(put("k", row{Tags: texts()})), done,
			items{"k": {Tags: texts()}},
		},
	}
	for i, text := range texts() {
		cases = append(cases, testCase{
			fmt.Sprintf("text %d can be put, compared and set", i), items{"k": {Name: text}},
			ops(update("k").Set("note", text).If(table.Equal("name", text))), done, items{"k": {
				Name: text,
				Note: text,
			}},
		})
	}
	return cases
}

func texts() []string {
	return []string{
		"", " ", "null", "7", "{}", `"quoted"`, `back\slash`, "line\nbreak\r\n\ttab",
		"<a href='x'>&amp;</a>", "\x00\x01\x1f\x7f", "\u2028\u2029", "e\u0301", "🚢👩‍👩‍👧", "\ufffd",
		"'; DROP TABLE items; --", strings.Repeat("long ", 2000),
	}
}

type word string

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
	Word    word     `json:"word"`
	True    bool     `json:"true"`
	False   bool     `json:"false"`
	Int     int      `json:"int"`
	Max     int64    `json:"max"`
	Min     int64    `json:"min"`
	Bytes   []byte   `json:"bytes"`
	Strings []string `json:"strings"`
	Ints    []int64  `json:"ints"`
	Bools   []bool   `json:"bools"`
	Inner   inner    `json:"inner"`
	Pointer *inner   `json:"pointer,omitempty"`
	Absent  *inner   `json:"absent,omitempty"`
	Inners  []inner  `json:"inners"`
}

// valuesComeBack puts every value, then sets those that can be set, in place of
// values of other types.
func valuesComeBack(s *state) error {
	want := everything{
		base:    base{Version: 3},
		String:  "é🚢\"\\\n\x00",
		Word:    "active",
		True:    true,
		Int:     -42,
		Max:     math.MaxInt64,
		Min:     math.MinInt64,
		Bytes:   []byte{0, 1, 0xfe, 0xff},
		Strings: []string{"b", "", "a", "b"},
		Ints:    []int64{math.MaxInt64, 0, math.MinInt64},
		Bools:   []bool{true, false, true},
		Inner:   inner{"i", 1 << 40, []string{"t"}, &inner{Name: "ii"}},
		Pointer: &inner{Name: "p"},
		Inners:  []inner{{Name: "a", Size: 1}, {Name: "b", Tags: []string{"x", "y"}}},
	}
	s.must(s.write(put("k", want)))
	s.wantEverything(want)
	set, others := update("k"), update("k")
	for attr, value := range map[string]any{
		"string":  want.String,
		"empty":   "",
		"word":    want.Word,
		"true":    true,
		"false":   false,
		"int":     want.Int,
		"max":     want.Max,
		"min":     want.Min,
		"strings": want.Strings,
		"ints":    want.Ints,
		"bools":   want.Bools,
	} {
		set, others = set.Set(attr, value), others.Set(attr, []string{"old"})
	}
	s.must(s.write(others))
	s.must(s.write(set))
	s.wantEverything(want)
	s.must(s.write(check("k", table.Equal("empty", ""), table.Equal("false", false))))
	return s.write(remove("k"))
}

func (s *state) wantEverything(want everything) {
	s.Helper()
	for how, decode := range s.reads("k") {
		var got everything
		if err := decode(&got); err != nil || !reflect.DeepEqual(got, want) {
			s.Errorf("%s: got %+v and error %v, want %+v", how, got, err, want)
		}
	}
}

func emptySlices(s *state) error {
	empty := everything{Strings: []string{}, Bytes: []byte{}, Ints: []int64{}, Bools: []bool{}}
	emptied := update("k").Set("strings", []string{}).Set("ints", []int64{})
	for _, op := range []table.Op{put("k", everything{}), put("k", empty), emptied} {
		s.must(s.write(op))
		var got everything
		s.must(s.Get(s.Context(), s.key("k"), &got))
		if len(got.Strings)+len(got.Bytes)+len(got.Ints)+len(got.Bools)+len(got.Inners) != 0 {
			s.Errorf("got %+v", got)
		}
	}
	return s.write(remove("k"))
}
