package tabletest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"ferry/shared/table"
)

func transactionTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"write then query shows what was written":             readBack,
		"write then query of a refused write reads nothing":   readBackRefused,
		"write then query without operations is a query":      readBackNothing,
		"write then query shows each of many its own write":   readBackConcurrent,
		"all kinds of operation happen together":              allKindsTogether,
		"a refused operation leaves the others undone":        refusedUndoesAll,
		"the first refused operation is named":                firstRefusedNamed,
		"a check binds the rest of the write":                 checkBinds,
		"conditions see the items as they were before":        conditionsSeeBefore,
		"100 operations are one write":                        hundredOperations,
		"100 operations are undone by the last one's refusal": hundredRefused,
		"a write spans partitions":                            spansPartitions,
	}
}

func allKindsTogether(t *testing.T, s suite) {
	s.put("deleted", row{})
	s.put("updated", row{Name: "n", Count: 1})
	s.put("checked", row{Done: true})
	s.write(
		table.Put(s.key("put"), row{Name: "p"}).If(table.NotExists()),
		table.Update(s.key("updated")).Add("count", 1).If(table.Exists()),
		table.Delete(s.key("deleted")).If(table.Exists()),
		table.Check(s.key("checked"), table.Equal("done", true)),
		table.Update(s.key("made")).Set("name", "m"),
	)
	s.wantRow("put", row{Name: "p"})
	s.wantRow("updated", row{Name: "n", Count: 2})
	s.wantMissing("deleted")
	s.wantRow("checked", row{Done: true})
	s.wantRow("made", row{Name: "m"})
}

func refusedUndoesAll(t *testing.T, s suite) {
	ops := func() []table.Op {
		return []table.Op{
			table.Put(s.key("put"), row{Name: "p"}),
			table.Put(s.key("replaced"), row{Name: "new"}),
			table.Update(s.key("updated")).Add("count", 1),
			table.Delete(s.key("deleted")),
		}
	}
	s.put("replaced", row{Name: "old"})
	s.put("updated", row{Count: 1})
	s.put("deleted", row{Name: "d"})
	for at := range len(ops()) + 1 {
		refused := table.Put(s.key("refused"), row{}).If(table.Exists())
		all := append(ops()[:at:at], append([]table.Op{refused}, ops()[at:]...)...)
		s.wantRefused(s.Write(t.Context(), all...), at)
		s.wantMissing("put", "refused")
		s.wantRow("replaced", row{Name: "old"})
		s.wantRow("updated", row{Count: 1})
		s.wantRow("deleted", row{Name: "d"})
	}
}

func firstRefusedNamed(t *testing.T, s suite) {
	s.put("there", row{})
	s.wantRefused(s.Write(t.Context(),
		table.Check(s.key("there"), table.Exists()),
		table.Put(s.key("a"), row{}),
		table.Delete(s.key("b")).If(table.Exists()),
		table.Put(s.key("c"), row{}),
		table.Check(s.key("d"), table.Exists()),
		table.Update(s.key("e")).Set("name", "x").If(table.Exists()),
	), 2)
	s.wantMissing("a", "c", "e")
}

func checkBinds(t *testing.T, s suite) {
	s.put("guard", row{Count: 3})
	s.wantRefused(s.Write(t.Context(), table.Put(s.key("k"), row{}), table.Check(s.key("guard"), table.AtMost("count", 2))), 1)
	s.wantMissing("k")
	s.write(table.Put(s.key("k"), row{}), table.Check(s.key("guard"), table.AtMost("count", 3)))
	s.wantRow("k", row{})
	s.wantRow("guard", row{Count: 3})
	s.write(table.Check(s.key("absent"), table.NotExists()))
	s.wantMissing("absent")
}

func conditionsSeeBefore(t *testing.T, s suite) {
	s.put("k", row{Count: 1})
	s.write(table.Update(s.key("k")).Add("count", 5).If(table.AtMost("count", 1)))
	s.wantRow("k", row{Count: 6})
	s.write(table.Put(s.key("k"), row{Count: 9}).If(table.Equal("count", int64(6))))
	s.wantRow("k", row{Count: 9})
}

func hundredOperations(t *testing.T, s suite) {
	s.fill(60)
	var ops []table.Op
	for i := range table.MaxOps {
		k := s.key(numbered("k", i))
		switch {
		case i < 20:
			ops = append(ops, table.Delete(k).If(table.Exists()))
		case i < 40:
			ops = append(ops, table.Update(k).Add("count", 1000))
		case i < 60:
			ops = append(ops, table.Check(k, table.Equal("count", int64(i))))
		default:
			ops = append(ops, table.Put(k, row{Name: "new"}).If(table.NotExists()))
		}
	}
	s.write(ops...)
	items := s.query(table.Query{Limit: 100}).Items
	if len(items) != 80 {
		t.Fatalf("got %d items, want 80", len(items))
	}
	for i, item := range items {
		n := int64(i + 20)
		want := row{Name: "new"}
		if n < 40 {
			want = row{Count: n + 1000}
		} else if n < 60 {
			want = row{Count: n}
		}
		if got := s.decode(item); got.Name != want.Name || got.Count != want.Count {
			t.Errorf("%s is %+v, want %+v", item.Key, got, want)
		}
	}
}

func hundredRefused(t *testing.T, s suite) {
	var ops []table.Op
	for i := range table.MaxOps {
		ops = append(ops, table.Put(s.key(numbered("k", i)), row{}))
	}
	ops[99] = ops[99].If(table.Exists())
	s.wantRefused(s.Write(t.Context(), ops...), 99)
	if page := s.query(table.Query{Limit: 100}); len(page.Items) != 0 {
		t.Errorf("%d items were written", len(page.Items))
	}
}

func spansPartitions(t *testing.T, s suite) {
	s.write(table.Put(s.key("k"), row{Name: "one"}), table.Put(s.other("k"), row{Name: "two"}))
	s.wantRefused(s.Write(t.Context(), table.Delete(s.key("k")), table.Delete(s.other("k")).If(table.NotExists())), 1)
	s.wantRow("k", row{Name: "one"})
}

func (s suite) readBack(q table.Query, ops ...table.Op) (table.Page, error) {
	q.PK = s.pk
	return s.WriteThenQuery(s.Context(), q, ops...)
}

func readBack(t *testing.T, s suite) {
	s.put("a", row{Name: "old"})
	s.put("b", row{Name: "gone"})
	page, err := s.readBack(table.Query{Descending: true, Limit: 2},
		table.Put(s.key("c"), row{Name: "c"}), table.Put(s.key("d"), row{Name: "d"}),
		table.Delete(s.key("b")), table.Update(s.key("a")).Add("count", 7))
	if err != nil || !page.More {
		t.Fatalf("more %v, error %v", page.More, err)
	}
	if got := sortKeys(page.Items); !reflect.DeepEqual(got, []string{"d", "c"}) {
		t.Errorf("the page has %q", got)
	}
	page, err = s.readBack(table.Query{Limit: 10}, table.Update(s.key("a")).Add("count", 1))
	if err != nil || page.More || len(page.Items) != 3 {
		t.Fatalf("the page is %+v, error %v", page, err)
	}
	var a row
	if err := page.Items[0].Decode(&a); err != nil || a.Count != 8 || a.Name != "old" {
		t.Errorf("the first item is %+v, %v", a, err)
	}
}

func readBackRefused(t *testing.T, s suite) {
	s.put("a", row{})
	page, err := s.readBack(table.Query{Limit: 10}, table.Put(s.key("b"), row{}), table.Put(s.key("a"), row{}).If(table.NotExists()))
	s.wantRefused(err, 1)
	if len(page.Items) != 0 {
		t.Errorf("the page has %d items", len(page.Items))
	}
	s.wantMissing("b")
	if _, err := s.readBack(table.Query{Limit: 0}, table.Put(s.key("c"), row{})); err == nil {
		t.Error("a query without limit is no error")
	}
	s.wantMissing("c")
}

func readBackNothing(t *testing.T, s suite) {
	s.put("a", row{})
	page, err := s.readBack(table.Query{Limit: 10})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("the page is %+v, error %v", page, err)
	}
}

func readBackConcurrent(t *testing.T, s suite) {
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			sk := fmt.Sprintf("%03d", i)
			page, err := s.readBack(table.Query{Limit: 100}, table.Put(s.key(sk), row{}))
			if err != nil {
				t.Error(err)
			} else if !slices.Contains(sortKeys(page.Items), sk) {
				t.Errorf("the page after the write of %s has %q", sk, sortKeys(page.Items))
			}
		})
	}
	wg.Wait()
}
