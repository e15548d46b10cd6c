package tabletest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ferry/shared/table"
)

func invalidTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"bad keys are errors":                      badKeys,
		"bad queries are errors":                   badQueries,
		"too many keys are an error":               tooManyKeys,
		"bad operations are errors and write none": badOperations,
		"too many operations write nothing":        tooManyOperations,
		"items that are too large write nothing":   tooLarge,
		"update takes only updates":                updateOfOtherKinds,
		"a context that has ended is an error":     endedContext,
	}
}

func (s suite) badKeys() []table.Key {
	return []table.Key{
		{}, {PK: s.pk}, {SK: "k"},
		{PK: s.pk + fill(2049-len(s.pk)), SK: "k"},
		{PK: s.pk, SK: fill(1025)},
		{PK: s.pk, SK: "a\xffb"},
		{PK: s.pk + "\xff", SK: "k"},
	}
}

func badKeys(t *testing.T, s suite) {
	for _, k := range s.badKeys() {
		s.wantError(s.Get(t.Context(), k, &row{}))
		_, err := s.GetMany(t.Context(), s.key("fine"), k)
		s.wantError(err)
		s.wantError(s.Update(t.Context(), table.Update(k).Add("count", 1), &row{}))
		for _, op := range []table.Op{table.Put(k, row{}), table.Update(k).Add("count", 1), table.Delete(k), table.Check(k, table.NotExists())} {
			s.wantError(s.Write(t.Context(), table.Put(s.key("fine"), row{}), op))
		}
	}
	s.wantNothing()
}

func (s suite) wantNothing() {
	s.Helper()
	if page := s.query(table.Query{Limit: 10}); len(page.Items) != 0 {
		s.Errorf("%q was written", sortKeys(page.Items))
	}
}

func badQueries(t *testing.T, s suite) {
	for _, q := range []table.Query{
		{PK: s.pk}, {PK: s.pk, Limit: -1}, {PK: s.pk, Limit: table.MaxPage + 1}, {Limit: 1},
		{PK: fill(2049), Limit: 1}, {PK: s.pk, Limit: 1, After: fill(1025)}, {PK: s.pk, Limit: 1, After: "\xff"},
	} {
		_, err := s.Query(t.Context(), q)
		s.wantError(err)
	}
}

func tooManyKeys(t *testing.T, s suite) {
	keys := make([]table.Key, table.MaxKeys+1)
	for i := range keys {
		keys[i] = s.key(numbered("k", i))
	}
	_, err := s.GetMany(t.Context(), keys...)
	s.wantError(err)
}

func badOperations(t *testing.T, s suite) {
	k := s.key("bad")
	up := table.Update(k)
	type reserved struct {
		Name string `json:"sk"`
	}
	type embeds struct{ reserved }
	ops := map[string]table.Op{
		"put of nil":                    table.Put(k, nil),
		"put of a nil pointer":          table.Put(k, (*row)(nil)),
		"put of a string":               table.Put(k, "x"),
		"put of a slice":                table.Put(k, []row{}),
		"put of a map":                  table.Put(k, map[string]string{}),
		"put of a reserved attribute":   table.Put(k, reserved{"x"}),
		"put of an embedded one":        table.Put(k, embeds{}),
		"put of a channel":              table.Put(k, struct{ C chan int }{make(chan int)}),
		"put with changes":              table.Put(k, row{}).Set("name", "x"),
		"update without changes":        up,
		"update of one attribute twice": up.Set("name", "x").Set("name", "y"),
		"set and add of one attribute":  up.Add("count", 1).Set("count", 2),
		"set of no name":                up.Set("", "x"),
		"set of pk":                     up.Set("pk", "x"),
		"set of sk":                     up.Set("sk", "x"),
		"add to ttl":                    up.Add("ttl", 1),
		"set to nil":                    up.Set("name", nil),
		"set to a float":                up.Set("name", 1.5),
		"set to a map":                  up.Set("name", map[string]string{}),
		"set to a channel":              up.Set("name", make(chan int)),
		"equal to nil":                  up.Set("name", "x").If(table.Equal("name", nil)),
		"equal to a slice":              up.Set("name", "x").If(table.Equal("name", []string{})),
		"equal of no name":              up.Set("name", "x").If(table.Equal("", "x")),
		"at most of pk":                 up.Set("name", "x").If(table.AtMost("pk", 1)),
		"unknown test":                  up.Set("name", "x").If(table.Cond{Test: 99}),
		"unknown kind":                  {Kind: 99, Key: k},
		"check without conditions":      table.Check(k),
		"check with an expiry":          table.Check(k, table.NotExists()).Expire(time.Unix(1, 0)),
		"delete with an expiry":         table.Delete(k).Expire(time.Unix(1, 0)),
		"delete with changes":           table.Delete(k).Set("name", "x"),
		"the same key twice":            table.Put(s.key("fine"), row{Name: "again"}),
	}
	for name, op := range ops {
		err := s.Write(t.Context(), table.Put(s.key("fine"), row{}), op)
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
		if errors.Is(err, table.ErrCondition) {
			t.Errorf("%s: got a refused condition", name)
		}
	}
	s.wantNothing()
}

func tooManyOperations(t *testing.T, s suite) {
	var ops []table.Op
	for i := range table.MaxOps + 1 {
		ops = append(ops, table.Put(s.key(numbered("k", i)), row{}))
	}
	s.wantError(s.Write(t.Context(), ops...))
	s.wantNothing()
}

func tooLarge(t *testing.T, s suite) {
	s.wantError(s.Write(t.Context(), table.Put(s.key("a"), row{}), table.Put(s.key("b"), row{Name: fill(table.MaxItem + 1)})))
	s.wantError(s.Update(t.Context(), table.Update(s.key("b")).Set("name", fill(table.MaxItem+1)), &row{}))
	s.wantNothing()
	s.put("c", row{Name: fill(300_000)})
	s.wantError(s.Write(t.Context(), table.Put(s.key("a"), row{}), table.Update(s.key("c")).Set("note", fill(300_000))))
	s.wantMissing("a")
	if s.get("c").Note != "" {
		t.Error("the item grew beyond its bound")
	}
}

func updateOfOtherKinds(t *testing.T, s suite) {
	for _, op := range []table.Op{table.Put(s.key("k"), row{}), table.Delete(s.key("k")), table.Check(s.key("k"), table.NotExists())} {
		s.wantError(s.Update(t.Context(), op, &row{}))
	}
	s.wantNothing()
}

func endedContext(t *testing.T, s suite) {
	ctx := ended(t)
	s.put("there", row{Name: "n"})
	_, many := s.GetMany(ctx, s.key("there"))
	_, query := s.Query(ctx, table.Query{PK: s.pk, Limit: 1})
	for name, err := range map[string]error{
		"Get":     s.Get(ctx, s.key("there"), &row{}),
		"GetMany": many,
		"Query":   query,
		"Write":   s.Write(ctx, table.Put(s.key("new"), row{}), table.Delete(s.key("there"))),
		"Update":  s.Update(ctx, table.Update(s.key("there")).Set("name", "x"), &row{}),
		"Scan":    s.Scan(ctx, func(table.Item) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want context.Canceled", name, err)
		}
	}
	s.wantMissing("new")
	s.wantRow("there", row{Name: "n"})
	if strings.Contains(s.get("there").Name, "x") {
		t.Error("the update happened")
	}
}
