package tabletest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"ferry/shared/table"
)

func conditionTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"each condition holds when it should and only then": conditionsHold,
		"all kinds of operation obey conditions":            conditionsOnKinds,
		"omitted attributes are missing":                    conditionsOmitted,
		"at most tells int64 apart to the last unit":        atMostExact,
	}
}

type conditionCase struct {
	on    string
	conds []table.Cond
	holds bool
}

// conditionCases speak of an item "there" (name n, count 5, done true, big
// 2^63-1, zero 0, no 0 or attribute other) and an item "none" that is missing.
func conditionCases() []conditionCase {
	conds := func(c ...table.Cond) []table.Cond { return c }
	type named string
	return []conditionCase{
		{"there", conds(table.Exists()), true},
		{"none", conds(table.Exists()), false},
		{"there", conds(table.NotExists()), false},
		{"none", conds(table.NotExists()), true},

		{"there", conds(table.Equal("name", "n")), true},
		{"there", conds(table.Equal("name", named("n"))), true},
		{"there", conds(table.Equal("name", "N")), false},
		{"there", conds(table.Equal("name", "")), false},
		{"there", conds(table.Equal("done", true)), true},
		{"there", conds(table.Equal("done", false)), false},
		{"there", conds(table.Equal("count", int64(5))), true},
		{"there", conds(table.Equal("count", 5)), true},
		{"there", conds(table.Equal("count", int64(6))), false},
		{"there", conds(table.Equal("zero", int64(0))), true},
		{"there", conds(table.Equal("big", int64(math.MaxInt64))), true},
		{"there", conds(table.Equal("big", int64(math.MaxInt64-1))), false},
		{"there", conds(table.Equal("count", "5")), false},
		{"there", conds(table.Equal("done", "true")), false},
		{"there", conds(table.Equal("done", int64(1))), false},
		{"there", conds(table.Equal("other", "")), false},
		{"there", conds(table.Equal("other", int64(0))), false},
		{"there", conds(table.Equal("other", false)), false},
		{"none", conds(table.Equal("name", "n")), false},
		{"none", conds(table.Equal("count", int64(0))), false},

		{"there", conds(table.AtMost("count", 5)), true},
		{"there", conds(table.AtMost("count", 6)), true},
		{"there", conds(table.AtMost("count", 4)), false},
		{"there", conds(table.AtMost("count", -5)), false},
		{"there", conds(table.AtMost("other", 0)), true},
		{"there", conds(table.AtMost("other", 9)), true},
		{"there", conds(table.AtMost("other", -1)), false},
		{"none", conds(table.AtMost("count", 0)), true},
		{"none", conds(table.AtMost("count", 1)), true},
		{"none", conds(table.AtMost("count", -1)), false},
		{"there", conds(table.AtMost("name", math.MaxInt64)), false},
		{"there", conds(table.AtMost("done", math.MaxInt64)), false},

		{"there", conds(table.Exists(), table.Equal("name", "n"), table.AtMost("count", 5)), true},
		{"there", conds(table.Exists(), table.Equal("name", "n"), table.AtMost("count", 4)), false},
		{"there", conds(table.NotExists(), table.Equal("name", "n")), false},
		{"there", conds(table.AtMost("count", 9), table.AtMost("count", 4)), false},
		{"none", conds(table.NotExists(), table.AtMost("count", 0)), true},
	}
}

func conditionsHold(t *testing.T, s suite) {
	s.put("there", struct {
		Name  string `json:"name"`
		Count int64  `json:"count"`
		Done  bool   `json:"done"`
		Big   int64  `json:"big"`
		Zero  int64  `json:"zero"`
	}{"n", 5, true, math.MaxInt64, 0})
	for _, tc := range conditionCases() {
		err := s.Write(t.Context(), table.Check(s.key(tc.on), tc.conds...))
		if tc.holds && err != nil || !tc.holds && !errors.Is(err, table.ErrCondition) {
			t.Errorf("%+v on %q: got error %v, want that it holds: %t", tc.conds, tc.on, err, tc.holds)
		}
	}
}

func conditionsOnKinds(t *testing.T, s suite) {
	kinds := map[string]func(table.Key) table.Op{
		"put":    func(k table.Key) table.Op { return table.Put(k, row{Name: "new", Count: 1}) },
		"update": func(k table.Key) table.Op { return table.Update(k).Set("name", "new") },
		"delete": table.Delete,
	}
	for name, make := range kinds {
		s.put(name, row{Name: "old", Count: 1})
		s.wantRefused(s.Write(t.Context(), make(s.key(name)).If(table.Equal("name", "new"))), 0)
		s.wantRefused(s.Write(t.Context(), make(s.key(name)).If(table.NotExists())), 0)
		s.wantRefused(s.Write(t.Context(), make(s.key(name)).If(table.AtMost("count", 0))), 0)
		s.wantRow(name, row{Name: "old", Count: 1})
		s.write(make(s.key(name)).If(table.Exists()).If(table.Equal("name", "old"), table.AtMost("count", 1)))
		if name == "delete" {
			s.wantMissing(name)
		} else {
			s.wantRow(name, row{Name: "new", Count: 1})
		}
		missing := fmt.Sprint("missing ", name)
		s.wantRefused(s.Write(t.Context(), make(s.key(missing)).If(table.Exists())), 0)
		s.wantMissing(missing)
		s.write(make(s.key(missing)).If(table.NotExists()))
	}
}

func conditionsOmitted(t *testing.T, s suite) {
	s.put("k", row{Name: ""})
	s.write(table.Check(s.key("k"), table.Equal("name", "")))
	s.wantRefused(s.Write(t.Context(), table.Check(s.key("k"), table.Equal("note", ""))), 0)
	type hidden struct {
		Name string `json:"name"`
		Note string `json:"-"`
	}
	s.put("k", hidden{Name: "n", Note: "not stored"})
	for _, attr := range []string{"Note", "note", "-"} {
		s.wantRefused(s.Write(t.Context(), table.Check(s.key("k"), table.Equal(attr, "not stored"))), 0)
	}
}

func atMostExact(t *testing.T, s suite) {
	for i, n := range []int64{math.MaxInt64, math.MinInt64 + 1, 1 << 53, 1<<53 + 1, -1<<53 - 1, 0, -1} {
		sk := numbered("k", i)
		s.put(sk, row{Count: n})
		s.write(table.Check(s.key(sk), table.AtMost("count", n)))
		s.wantRefused(s.Write(t.Context(), table.Check(s.key(sk), table.AtMost("count", n-1))), 0)
	}
}
