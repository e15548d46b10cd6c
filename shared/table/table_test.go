package table_test

import (
	"testing"

	"ferry/shared/table"
)

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
