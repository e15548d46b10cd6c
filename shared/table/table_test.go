package table_test

import (
	"errors"
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

func TestAConditionErrorTellsItsOperation(t *testing.T) {
	t.Parallel()
	var err error = &table.ConditionError{Op: 7}
	if !errors.Is(err, table.ErrCondition) || errors.Is(err, table.ErrBusy) {
		t.Errorf("%v does not match only ErrCondition", err)
	}
	if got := err.Error(); got != "table: condition not met (operation 7)" {
		t.Errorf("got text %q", got)
	}
}
