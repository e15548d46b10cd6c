package files_test

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// TestASweepCostsWhatTheTablesPageSays counts the calls for 250 files of one
// user: records are read by the hundred, and only what changes costs more.
func TestASweepCostsWhatTheTablesPageSays(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	const stored = 250
	for i := range stored {
		s.put("alice", fmt.Sprint(i))
	}
	type calls = map[string]int
	// The positions are read and removed, and the users listed, once each.
	fixed := calls{"table.Get": 3, "table.Write": 2, "table.Query": 1, "table.GetMany": 1, "blob.List": 2, "blob.Sweep": 1}
	for _, step := range []struct {
		what  string
		after int // days
		more  calls
	}{
		{"files that stay", 0, calls{"table.GetMany": 3, "table.Get": 1}},
		{"files that move", 31, calls{"table.GetMany": 3 + stored, "table.Get": 1, "blob.Copy": stored, "table.Write": stored, "blob.Delete": stored}},
		{"files that go", 91, calls{"table.GetMany": 3, "table.Get": 1 + stored, "table.Write": stored, "blob.Delete": stored}},
		{"nothing", 0, calls{}},
	} {
		s.Clock.Advance(time.Duration(step.after) * sweepDay)
		want := maps.Clone(fixed)
		for name, n := range step.more {
			want[name] += n
		}
		s.Calls.Reset()
		r := s.sweep()
		if got := s.Calls.Reset(); !maps.Equal(got, want) {
			t.Errorf("%s (%+v) cost %v, want %v", step.what, r, got, want)
		}
	}
}
