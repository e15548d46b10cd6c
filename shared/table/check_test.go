package table_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/table"
)

type row struct {
	Name string `json:"name"`
}

func long(n int) string { return strings.Repeat("x", n) }

func TestAWriteCannotHaveTheseOperations(t *testing.T) {
	t.Parallel()
	key := table.Key{PK: "p", SK: "k"}
	put := func(v any) table.Op { return table.Put(key, v) }
	up, remove := table.Update(key), table.Delete(key)
	named := up.Set("name", "x")
	type reserved struct {
		Name string `json:"sk"`
	}
	type embeds struct{ reserved }
	for what, op := range map[string]table.Op{
		"a put of nil":                                   put(nil),
		"a put of a nil pointer":                         put((*row)(nil)),
		"a put of a string":                              put("x"),
		"a put of a struct with the attribute sk":        put(reserved{"x"}),
		"a put of a struct that embeds the attribute sk": put(embeds{}),
		"an update without changes":                      up,
		"an update that sets an attribute twice":         named.Set("name", "y"),
		"a set of an attribute without a name":           up.Set("", "x"),
		"a set of pk":                                    up.Set("pk", "x"),
		"a set of sk":                                    up.Set("sk", "x"),
		"an add to ttl":                                  up.Add("ttl", 1),
		"a set to nil":                                   up.Set("name", nil),
		"a set to a float":                               up.Set("name", 1.5),
		"a set to a map":                                 up.Set("name", map[string]string{}),
		"a condition equal to nil":                       named.If(table.Equal("name", nil)),
		"a condition on an attribute without a name":     named.If(table.Equal("", "x")),
		"a condition on pk":                              named.If(table.AtMost("pk", 1)),
		"a condition of an unknown kind":                 named.If(table.Cond{Test: 99}),
		"an operation of an unknown kind":                {Kind: 99, Key: key},
		"a check without conditions":                     table.Check(key),
		"a delete with an expiry":                        remove.Expire(time.Unix(1, 0)),
		"a delete with changes":                          remove.Set("name", "x"),
		"a second operation on the same key":             table.Put(table.Key{PK: "p", SK: "fine"}, row{}),
	} {
		if err := table.CheckOps(table.Put(table.Key{PK: "p", SK: "fine"}, row{}), op); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if table.CheckUpdate(table.Delete(key)) == nil {
		t.Error("Table.Update takes a delete")
	}
	var many []table.Op
	for i := range table.MaxOps + 1 {
		many = append(many, table.Put(table.Key{PK: "p", SK: fmt.Sprint(i)}, row{}))
	}
	if table.CheckOps(many...) == nil || table.CheckOps(many[1:]...) != nil {
		t.Error("the bound of operations does not hold")
	}
}

func TestKeysAndQueriesOutOfBoundsAreErrors(t *testing.T) {
	t.Parallel()
	for _, k := range []table.Key{
		{}, {PK: "p"}, {SK: "k"}, {
			PK: long(2049),
			SK: "k",
		}, {PK: "p", SK: long(1025)}, {PK: "p", SK: "a\xffb"}, {PK: "\xff", SK: "k"},
	} {
		if table.CheckKeys(table.Key{PK: "p", SK: "fine"}, k) == nil || table.CheckOps(table.Delete(k)) == nil {
			t.Errorf("the key %.20q is accepted", k)
		}
	}
	for _, q := range []table.Query{
		{PK: "p"}, {PK: "p", Limit: -1}, {PK: "p", Limit: table.MaxPage + 1}, {Limit: 1},
		{PK: long(2049), Limit: 1}, {PK: "p", Limit: 1, After: long(1025)}, {PK: "p", Limit: 1, After: "\xff"},
	} {
		if table.CheckQuery(q) == nil {
			t.Errorf("%.90s is accepted", fmt.Sprintf("%+v", q))
		}
	}
	longest := table.Key{PK: long(2048), SK: long(1024)}
	if table.CheckKeys(slices.Repeat([]table.Key{longest}, table.MaxKeys+1)...) == nil {
		t.Error("too many keys are accepted")
	}
	if err := table.CheckKeys(slices.Repeat([]table.Key{longest}, table.MaxKeys)...); err != nil {
		t.Error(err)
	}
	if err := table.CheckQuery(table.Query{PK: longest.PK, Limit: table.MaxPage, After: longest.SK}); err != nil {
		t.Error(err)
	}
}

func TestMethodsOfAnOperationChangeACopy(t *testing.T) {
	t.Parallel()
	base := table.Update(table.Key{PK: "p", SK: "s"}).Add("n", 1).If(table.Exists())
	one := base.Set("a", 1).If(table.AtMost("n", 1))
	two := base.Set("b", 2).If(table.NotExists())
	if len(base.Changes) != 1 || len(base.Conds) != 1 {
		t.Errorf("the first operation became %+v", base)
	}
	if one.Changes[1].Attr != "a" || two.Changes[1].Attr != "b" {
		t.Errorf("the copies share changes: %+v and %+v", one, two)
	}
	if one.Conds[1].Test != table.TestAtMost || two.Conds[1].Test != table.TestNotExists {
		t.Errorf("the copies share conditions: %+v and %+v", one, two)
	}
}
