package files_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
)

// filled is a store with further objects in the user area.
type filled struct {
	blob.Store
	keys []string
}

func (f filled) List(ctx context.Context, area blob.Area, after string, limit int) ([]blob.Object, error) {
	all, err := f.Store.List(ctx, area, after, limit)
	if area == blob.Files {
		i, _ := slices.BinarySearch(f.keys, after+"\x00")
		for _, key := range f.keys[i:min(i+limit, len(f.keys))] {
			all = append(all, blob.Object{Key: key})
		}
		slices.SortFunc(all, func(a, b blob.Object) int { return strings.Compare(a.Key, b.Key) })
	}
	return all[:min(len(all), limit)], err
}

// TestSweepOf100000FilesMakesCallsForThoseThatAreDueAlone has 100 files to move, then to
// purge, among 100,000. A walk, once a month, is not counted.
func TestSweepOf100000FilesMakesCallsForThoseThatAreDueAlone(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.Data.Ports = s.Data.Ports.Clone()
	s.Data.Ports.Retention.KeepDays, s.Data.Ports.Retention.BackupDays = 10, 5
	const stored, due = 100_000, 100
	store := filled{Store: s.Data.Ports.Blobs}
	for i := range stored - due {
		store.keys = append(store.keys, s.dated(30+i%30, int64(i+1000), "alice"))
	}
	slices.Sort(store.keys)
	for i := range due {
		s.put("alice", fmt.Sprint(i))
	}
	s.Data.Ports.Blobs = store
	s.sweep()
	type calls = map[string]int
	// Each sweep reads its state, the items of what is due and the users with a quota, and
	// stores its state on a new day. Of each area it lists each shard, and reads the records
	// for each list.
	fixed := calls{"table.Get": 1, "table.Write": 1, "table.Query": 2, "blob.Sweep": 1}
	for _, step := range []struct {
		what  string
		after int // days
		want  files.SweepReport
		more  calls
	}{
		{"nothing due", 1, files.SweepReport{}, calls{}},
		{"files to move", 10, files.SweepReport{Seen: due, Moved: due},
			calls{"table.GetMany": 1 + due, "blob.Copy": due, "table.Write": 2 * due, "blob.Delete": due}},
		{"files to purge", 6, files.SweepReport{Seen: due, Purged: due},
			calls{"table.Get": due, "table.GetMany": 1, "table.Write": due, "blob.Delete": due}},
		{"nothing left", 1, files.SweepReport{}, calls{}},
	} {
		s.Clock.Advance(time.Duration(step.after) * day)
		step.want.Complete = true
		s.Calls.Reset()
		r := s.sweep()
		got := s.Calls.Reset()
		lists, reads := got["blob.List"], got["table.GetMany"]-step.more["table.GetMany"]
		if r != step.want || lists < 2 || lists > 32 || reads > 16 {
			t.Errorf("%s: the sweep reported %+v, with %d lists and %d reads of records", step.what, r, lists, reads)
		}
		want := maps.Clone(fixed)
		for name, n := range step.more {
			want[name] += n
		}
		delete(got, "blob.List")
		got["table.GetMany"] -= reads
		if maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 }); !maps.Equal(got, want) {
			t.Errorf("%s: the sweep made the calls %v, want %v", step.what, got, want)
		}
	}
}
