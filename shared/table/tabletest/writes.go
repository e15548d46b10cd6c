package tabletest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ferry/shared/table"
)

func writeCases() []testCase {
	later := time.Now().Add(time.Hour)
	old := row{Name: "old", Count: 5, Done: true, Note: "gone", Tags: []string{"gone"}}
	full := items{"k": old}
	return []testCase{
		{"a write of nothing does nothing", full, ops(), done, nil},
		{"a put replaces the whole item, including attributes unknown to its struct", full,
			inTurn(update("k").
				Set(
					"extra",
					"x",
				), put("k", row{Name: "k"}), check("k", table.Equal("extra", "x"))),
			refused(0), named("k")},
		{"a put accepts a pointer to a struct", nil, ops(put("k", &old)), done, full},
		{
			"an empty struct is an item",
			nil,
			inTurn(put("k", struct{}{}), check("k", table.Exists())),
			done,
			items{"k": {}},
		},
		{"a delete removes only its item", named("a", "b"), ops(remove("a")), done, named("b")},
		{"a delete of a missing item is no error", nil, ops(remove("k")), done, nil},
		{"an item can be put again after it was deleted", full,
			inTurn(remove("k"), put("k", row{Name: "k"}).
				If(table.NotExists())), done, named("k")},
		{"an update after a delete brings nothing back", full,
			inTurn(remove("k"), update("k").Add("count", 1)), done, items{"k": {Count: 1}}},
		{"an expiry changes no attribute", nil,
			inTurn(
				put("k", old).
					Expire(later), put("k", row{Name: "k"}), update("k").
					Expire(later.Add(time.Hour)),
				update("k").Add("count", 1).Expire(later), update("k").Add("count", 1),
			), done, items{"k": {Name: "k", Count: 2}}},
		{"an update with an expiry creates a missing item", nil,
			ops(update("k").Set("name", "k").Expire(later)), done, named("k")},
		{"relaxed operations can be mixed with others", nil,
			ops(
				put("a", row{Name: "a"}).Relax(),
				put("b", row{Name: "b"}),
			), done, named("a", "b")},
		{"a refused operation refuses relaxed ones too", named("a", "b"),
			ops(
				update("a").Add("count", 1).Relax(),
				check("b", table.NotExists()),
			), refused(1), nil},
	}
}

func updateCases() []testCase {
	full := items{"k": {Name: "7", Count: 1, Done: true, Note: "x", Tags: []string{"a"}}}
	changed := items{"k": {
		Name:  "m",
		Count: 3,
		Done:  true,
		Note:  "y",
		Tags:  []string{"b", "c"},
	}}
	cases := []testCase{
		{
			"a set creates a missing item", nil, ops(update("k").Set("name", "k")), done,
			named("k"),
		},
		{
			"an add creates a missing item", nil, ops(update("k").Add("count", -5)), done,
			items{"k": {Count: -5}},
		},
		{"an add to a missing attribute starts at 0", nil,
			inTurn(update("k").
				Set("note", "x"), update("k").Add("count", 5)), done, items{"k": {
				Count: 5,
				Note:  "x",
			}}},
		{
			"several changes happen together, also to attributes that the struct does not have",
			full,
			inTurn(
				update("k").
					Set("name", "m").
					Add("count", 2).
					Set("note", "y").
					Set("tags", []string{"b", "c"}).
					Add("other", 1),
				check("k", table.Equal("other", int64(1))),
			),
			done,
			changed,
		},
		{"attributes can have any name", nil, attributeNames, done, items{"k": {}, "n": {}}},
	}
	for _, sum := range []struct{ old, add, want int64 }{
		{3, -1, 2}, {-3, 3, 0}, {math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MaxInt64, math.MinInt64, -1}, {-1, math.MinInt64 + 1, math.MinInt64},
	} {
		cases = append(cases, testCase{
			fmt.Sprintf("adding %d to %d gives %d",
				sum.add, sum.old, sum.want), items{"k": {Count: sum.old}},
			ops(update("k").Add("count", sum.add)), done, items{"k": {Count: sum.want}},
		})
	}
	for _, attr := range []string{"name", "done", "tags"} {
		add := update("k").Add(attr, 1)
		cases = append(cases,
			testCase{"adding to " + attr + " is an error", full, ops(add), invalid, nil},
			testCase{
				"adding to " + attr + " undoes the write",
				full,
				ops(put("b", row{}), add),
				invalid,
				nil,
			},
		)
	}
	return cases
}

// attributeNames uses names that have a meaning in query languages.
func attributeNames(s *state) error {
	first, second, set := update("k"), update("k"), check("k")
	bounded, counted := update("n"), check("n")
	for _, attr := range []string{"size", "status", "key", "a.b", "a-b", "select", "_x", "1st", "doc"} {
		first = first.Set(attr, "a")
		second = second.If(table.Equal(attr, "a")).Set(attr, "b")
		set = set.If(table.Equal(attr, "b"))
		bounded = bounded.If(table.AtMost(attr, 1)).Add(attr, 1)
		counted = counted.If(table.Equal(attr, int64(2)))
	}
	for _, op := range []table.Op{first, second, set, bounded, bounded, counted} {
		s.must(s.write(op))
	}
	s.wantErr("a bound", s.write(bounded), refused(0))
	return nil
}

func conditionCases() []testCase {
	var cases []testCase
	for _, probe := range conditions() {
		made := probe.of["k"]
		made.Name = "k"
		for _, op := range []struct {
			name string
			op   table.Op
			want items
		}{
			{"a put", put("k", row{Name: "k"}), named("k")},
			{"an update", update("k").Set("name", "k"), items{"k": made}},
			{"a delete", remove("k"), items{}},
			{"a check", check("k"), nil},
		} {
			name := op.name + " of " + probe.what + " obeys each condition"
			cases = append(cases, testCase{
				name, probe.of, obeysEach(op.op, probe), done, op.want,
			})
		}
	}
	for _, n := range []int64{math.MaxInt64, math.MinInt64 + 1, 1 << 53, 1<<53 + 1, -1<<53 - 1, 0, -1} {
		exact := []table.Cond{table.Equal("count", n), table.AtMost("count", n)}
		name, seed := fmt.Sprint(
			"conditions are exact to the last unit at ",
			n,
		), items{"k": {Count: n}}
		fail := []table.Cond{table.Equal("count", n-1), table.AtMost("count", n-1)}
		cases = append(cases, testCase{
			name,
			seed,
			obeysEach(check("k"), probe{name, seed, exact, fail}),
			done,
			nil,
		})
	}
	type hidden struct {
		Name string `json:"name"`
		Note string `json:"-"`
	}
	cases = append(cases, testCase{
		"a field tagged - is not stored", nil, inTurn(
			put("k", hidden{"k", "x"}),
			check("k", table.Equal("Note", "x")),
		),
		refused(0), named("k"),
	})
	return cases
}

// probe has conditions on an item k: some that hold and some that fail.
type probe struct {
	what       string
	of         items
	hold, fail []table.Cond
}

func conditions() []probe {
	type text string
	conds := func(all ...table.Cond) []table.Cond { return all }
	return []probe{
		{"an item", items{"k": {Name: "n", Count: 5, Done: true}},
			conds(
				table.Exists(), table.Equal(
					"name",
					"n",
				), table.Equal("name", text("n")), table.Equal("done", true),
				table.Equal(
					"count",
					int64(5),
				), table.Equal("count", 5), table.AtMost("count", 5), table.AtMost("note", 0),
			),
			conds(
				table.NotExists(), table.Equal(
					"name",
					"N",
				), table.Equal("name", ""), table.Equal("done", false),
				table.Equal(
					"count",
					int64(6),
				), table.Equal("count", "5"), table.Equal("done", "true"),
				table.Equal(
					"done",
					int64(1),
				), table.Equal("note", ""), table.Equal("note", int64(0)),
				table.AtMost("count", 4),
				table.AtMost(
					"note",
					-1,
				), table.AtMost("name", math.MaxInt64), table.AtMost("done", math.MaxInt64),
			)},
		{"a missing item", items{},
			conds(table.NotExists(), table.AtMost("count", 0), table.AtMost("count", 1)),
			conds(
				table.Exists(),
				table.Equal("name", "n"),
				table.Equal("count", int64(0)),
				table.AtMost("count", -1),
			)},
	}
}

// obeysEach tries each condition that fails, alone and after all that hold, for a check also each
// that holds, and in the end all that hold.
func obeysEach(op table.Op, p probe) action {
	return func(s *state) error {
		for _, cond := range p.fail {
			s.wantErr(fmt.Sprintf("%+v", cond), s.write(op.If(cond)), refused(0))
			s.wantErr(fmt.Sprintf("%+v after others", cond), s.write(op.If(p.hold...).
				If(cond)), refused(0))
		}
		for _, cond := range p.hold {
			if op.Kind == table.KindCheck {
				s.wantErr(fmt.Sprintf("%+v", cond), s.write(op.If(cond)), done)
			}
		}
		return ops(op.If(p.hold...))(s)
	}
}

func transactionCases() []testCase {
	few, before, after := allKinds(1)
	hundred, manyBefore, manyAfter := allKinds(table.MaxOps / 5)
	cases := []testCase{
		{
			"operations of all kinds happen together, in two partitions",
			before,
			ops(few...),
			done,
			after,
		},
		{"100 operations are one write", manyBefore, ops(hundred...), done, manyAfter},
		{
			"100 operations are undone if the last is refused",
			manyBefore,
			ops(refuse(hundred, 99)...),
			refused(99),
			nil,
		},
		{
			"the error names the first refused operation",
			before,
			ops(refuse(few, 1, 3)...),
			refused(1),
			nil,
		},
	}
	for i := range few {
		name := fmt.Sprint("everything is undone if operation ", i, " is refused")
		cases = append(cases, testCase{name, before, ops(refuse(few, i)...), refused(i), nil})
	}
	return cases
}

// refuse adds a condition that never holds to some operations.
func refuse(all []table.Op, which ...int) []table.Op {
	all = slices.Clone(all)
	for _, i := range which {
		all[i] = all[i].If(table.AtMost("count", -1))
	}
	return all
}

// allKinds returns 5 n operations, and the items before and after them.
func allKinds(n int) (all []table.Op, before, after items) {
	before, after = items{}, items{}
	for i := range n {
		sk := func(name string) string { return fmt.Sprint(name, i) }
		before[sk("deleted")], before[sk("replaced")] = row{}, row{Name: "old", Note: "x"}
		before[sk("updated")], before[sk("checked")] = row{Name: "n", Count: 1}, row{Done: true}
		after[sk("x|put")], after[sk("replaced")] = row{Name: "p"}, row{Name: "r"}
		after[sk("updated")], after[sk("checked")] = row{Name: "n", Count: 2}, row{Done: true}
		all = append(all,
			put(sk("x|put"), row{Name: "p"}), put(sk("replaced"), row{Name: "r"}),
			update(sk("updated")).
				Add("count", 1).
				If(table.Exists()), remove(sk("deleted")).If(table.Exists()),
			check(sk("checked"), table.Equal("done", true)),
		)
	}
	return all, before, after
}
