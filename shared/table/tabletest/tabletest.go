// Package tabletest is the conformance suite of the port table: every backend
// must pass it. It checks each promise that the port's documentation makes.
package tabletest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"ferry/shared/table"
)

// Run runs the suite. open gives a table that is empty or shared with other
// tests, also ones that run at the same time: each test of the suite keeps to
// partitions with random names of its own.
func Run(t *testing.T, open func(t *testing.T) table.Table) {
	t.Helper()
	groups := []struct {
		name  string
		tests map[string]func(*testing.T, suite)
	}{
		{"read", readTests()},
		{"query", queryTests()},
		{"write", writeTests()},
		{"update", updateTests()},
		{"condition", conditionTests()},
		{"transaction", transactionTests()},
		{"concurrency", concurrencyTests()},
		{"value", valueTests()},
		{"invalid", invalidTests()},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for name, test := range g.tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, suite{T: t, Table: open(t), pk: "test#" + rand.Text()})
				})
			}
		})
	}
}

// suite is a table together with a partition that no other test uses. Its
// methods end the test on an unexpected error.
type suite struct {
	*testing.T
	table.Table
	pk string
}

// row is the value that most tests store.
type row struct {
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	Done  bool     `json:"done"`
	Note  string   `json:"note,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

func (s suite) key(sk string) table.Key { return table.Key{PK: s.pk, SK: sk} }

func (s suite) other(sk string) table.Key { return table.Key{PK: s.pk + "#other", SK: sk} }

func (s suite) write(ops ...table.Op) {
	s.Helper()
	if err := s.Table.Write(s.Context(), ops...); err != nil {
		s.Fatalf("writing: %v", err)
	}
}

func (s suite) put(sk string, value any) {
	s.Helper()
	s.write(table.Put(s.key(sk), value))
}

func (s suite) get(sk string) row {
	s.Helper()
	var r row
	if err := s.Table.Get(s.Context(), s.key(sk), &r); err != nil {
		s.Fatalf("getting %s: %v", sk, err)
	}
	return r
}

func (s suite) wantRow(sk string, want row) {
	s.Helper()
	if got := s.get(sk); !reflect.DeepEqual(got, want) {
		s.Errorf("item %s is %+v, want %+v", sk, got, want)
	}
}

func (s suite) wantMissing(sks ...string) {
	s.Helper()
	for _, sk := range sks {
		var r row
		if err := s.Table.Get(s.Context(), s.key(sk), &r); !errors.Is(err, table.ErrNotFound) {
			s.Errorf("getting %s: got error %v and %+v, want ErrNotFound", sk, err, r)
		}
	}
}

// wantRefused checks that err is a refused condition of operation op.
func (s suite) wantRefused(err error, op int) {
	s.Helper()
	var refused *table.ConditionError
	switch {
	case !errors.Is(err, table.ErrCondition):
		s.Errorf("got error %v, want ErrCondition", err)
	case !errors.As(err, &refused):
		s.Errorf("got error %v (%T), want a *ConditionError", err, err)
	case refused.Op != op:
		s.Errorf("operation %d was refused, want %d", refused.Op, op)
	}
}

// wantError checks for an error that is none of those with a meaning of their own.
func (s suite) wantError(err error) {
	s.Helper()
	if err == nil {
		s.Fatal("got no error")
	}
	for _, meaning := range []error{table.ErrNotFound, table.ErrCondition, table.ErrBusy, table.ErrFull} {
		if errors.Is(err, meaning) {
			s.Errorf("got error %v, want one that does not match it", err)
		}
	}
}

func (s suite) query(q table.Query) table.Page {
	s.Helper()
	if q.PK == "" {
		q.PK = s.pk
	}
	page, err := s.Table.Query(s.Context(), q)
	if err != nil {
		s.Fatalf("querying: %v", err)
	}
	return page
}

func (s suite) decode(item table.Item) row {
	s.Helper()
	var r row
	if err := item.Decode(&r); err != nil {
		s.Fatalf("decoding %s: %v", item.Key, err)
	}
	return r
}

func sortKeys(items []table.Item) []string {
	sks := make([]string, len(items))
	for i, item := range items {
		sks[i] = item.Key.SK
	}
	return sks
}

func numbered(prefix string, i int) string { return fmt.Sprintf("%s%04d", prefix, i) }

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
