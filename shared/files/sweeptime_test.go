package files_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/table"
)

// kept returns the key of a file that is kept for ever, which only a walk looks at.
func kept(owner string, id int) string { return fmt.Sprintf("D0-never/%d-%022d-%s", id, id, owner) }

// TestSweepStopsBeforeItsDeadlineAndTheNextResumes ends the time of each run after
// 70 removals, until a run reaches the end.
func TestSweepStopsBeforeItsDeadlineAndTheNextResumes(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	const objects = 250
	for i := range objects {
		s.orphan(blob.Files, kept("gone", i+1))
		s.orphan(blob.Backup, kept("gone", i+1))
	}
	s.Clock.Advance(2 * time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	seen, runs := 0, 0
	for complete := false; !complete; runs++ {
		if runs > 20 {
			t.Fatal("the sweep does not reach the end")
		}
		w, deleted := s.sweeper(), 0
		s.Calls.Before("blob.SetAside", func() error {
			if deleted++; deleted == 70 {
				w.Reserve = 48 * time.Hour // more time than is left
			}
			return nil
		})
		r, err := w.Run(ctx)
		if err != nil || r.Orphans != deleted || r.Seen != deleted || deleted > 70 {
			t.Fatalf("run %d reported %+v and removed %d, %v", runs, r, deleted, err)
		}
		seen, complete = seen+r.Seen, r.Complete
	}
	if seen != 2*objects || runs != 8 {
		t.Errorf("%d objects were seen in %d runs, want %d in 8", seen, runs, 2*objects)
	}
	s.wantObjects(blob.Files)
	s.wantObjects(blob.Backup)
	if left := s.Partitions("sweep ")["sweep state"]; left == "" || strings.Contains(left, "after") {
		t.Errorf("the place in the walk is left: %v", left)
	}
}

// TestFailedSweepResumesAfterTheFirstPage has more objects than fit one page of a
// list.
func TestFailedSweepResumesAfterTheFirstPage(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	const objects = blob.MaxList + 5
	for i := range objects {
		s.orphan(blob.Files, kept("gone", i+1))
	}
	lists := 0
	s.Calls.Before("blob.List", func() error {
		if lists++; lists == 6 { // the second page of the walk through the user area
			return errors.New("the store is away")
		}
		return nil
	})
	if r, err := s.sweeper().Run(t.Context()); err == nil || r.Seen != blob.MaxList {
		t.Fatalf("the first run reported %+v, %v", r, err)
	}
	if r, err := s.sweeper().Run(t.Context()); err != nil || r.Seen != 5 || !r.Complete {
		t.Fatalf("the second run reported %+v, %v", r, err)
	}
	s.Clock.Advance(31 * day)
	if r, err := s.sweeper().Run(t.Context()); err != nil || r.Orphans != objects || r.Failed != 0 {
		t.Fatalf("the third run reported %+v, %v", r, err)
	}
}

func TestSweepWithoutTimeDoesNothing(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	orphan := s.dated(-1, 1, "alice")
	s.orphan(blob.Files, orphan)
	s.Clock.Advance(2 * time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	w := s.sweeper()
	w.Reserve = 2 * time.Hour
	if r, err := w.Run(ctx); err != nil || r.Seen != 0 || r.Complete {
		t.Errorf("a run without time reported %+v, %v", r, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	expect.Err(t, "a cancelled run", failure(s.sweeper().Run(ended)), context.Canceled)
	s.wantObjects(blob.Files, orphan)
	expect.Equal(t, "leftovers removed by the next run", s.sweep().Orphans, 1)
}

// TestConcurrentSweepsDoNoHarm runs several sweeps over expired files.
func TestConcurrentSweepsDoNoHarm(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	const stored = 40
	for i := range stored {
		s.put("alice", fmt.Sprint("the content ", i))
	}
	s.Clock.Advance(31 * day)
	sweepConcurrently(s)
	records := map[string]string{}
	for key, item := range s.Partitions("backup#") {
		records[key] = item
	}
	if len(records) != stored || len(s.Partitions("files#")) != 0 || len(s.Partitions("link#")) != stored {
		t.Fatalf("%d records in the backup area, %d left, %d links",
			len(records), len(s.Partitions("files#")), len(s.Partitions("link#")))
	}
	expect.Equal(t, "objects in the backup area", len(s.Objects(blob.Backup)), stored)
	s.wantObjects(blob.Files)
	s.Clock.Advance(91 * day)
	sweepConcurrently(s)
	s.wantObjects(blob.Backup)
	expect.Equal(t, "items that are left", len(s.Partitions("backup#"))+len(s.Partitions("link#")), 0)
}

// sweepConcurrently runs four sweeps at once, and then one more for what they left.
// As the test's clock is ahead of the times of the objects, the grace is long.
func sweepConcurrently(s server) {
	s.Helper()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { (caller{server: s}).sweep(1000 * day) })
	}
	wg.Wait()
	s.sweep()
}

func keyOf(f files.File) table.Key { return files.Key(f.Area, f.Owner, f.ID) }

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
	p, set := s.Service.Ports, s.Service.Settings
	set.Retention = files.Retention{KeepDays: 10, BackupDays: 5}
	s.Service.Service = service.New(p, set)
	const stored, due = 100_000, 100
	store := filled{Store: p.Blobs}
	for i := range stored - due {
		store.keys = append(store.keys, s.dated(30+i%30, int64(i+1000), "alice"))
	}
	slices.Sort(store.keys)
	for i := range due {
		s.put("alice", fmt.Sprint(i))
	}
	p.Blobs = store
	s.Service.Service = service.New(p, set)
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
		{what: "nothing due", after: 1, want: files.SweepReport{}, more: calls{}},
		{what: "files to move", after: 10, want: files.SweepReport{Seen: due, Moved: due},
			more: calls{"table.GetMany": 1 + due, "blob.Copy": due, "table.Write": 2 * due, "blob.Delete": due}},
		{what: "files to purge", after: 6, want: files.SweepReport{Seen: due, Purged: due},
			more: calls{"table.Get": due, "table.GetMany": 1, "table.Write": due, "blob.Delete": due}},
		{what: "nothing left", after: 1, want: files.SweepReport{}, more: calls{}},
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
