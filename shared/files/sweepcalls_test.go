package files_test

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// TestSweepMakesTheCallsThatTheREADMEStates counts the calls for 250 files of one
// user. Records are read by the hundred; only what changes costs more.
func TestSweepMakesTheCallsThatTheREADMEStates(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	const stored = 250
	for i := range stored {
		s.put("alice", fmt.Sprint(i))
	}
	type calls = map[string]int
	// Each sweep reads and removes the positions, and lists the users.
	fixed := calls{"table.Get": 3, "table.Write": 2, "table.Query": 1, "table.GetMany": 1, "blob.List": 2, "blob.Sweep": 1}
	for _, step := range []struct {
		what  string
		after int // days
		more  calls
	}{
		{"files to keep", 0, calls{"table.GetMany": 3, "table.Get": 1}},
		{"files to move", 31, calls{"table.GetMany": 3 + stored, "table.Get": 1, "blob.Copy": stored, "table.Write": stored, "blob.Delete": stored}},
		{"files to purge", 91, calls{"table.GetMany": 3, "table.Get": 1 + stored, "table.Write": stored, "blob.Delete": stored}},
		{"no files", 0, calls{}},
	} {
		s.Clock.Advance(time.Duration(step.after) * day)
		want := maps.Clone(fixed)
		for name, n := range step.more {
			want[name] += n
		}
		s.Calls.Reset()
		r := s.sweep()
		if got := s.Calls.Reset(); !maps.Equal(got, want) {
			t.Errorf("sweeping %s (%+v) made the calls %v, want %v", step.what, r, got, want)
		}
	}
}
