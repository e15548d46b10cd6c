package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
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
	if _, err := s.sweeper().Run(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run gave %v", err)
	}
	s.wantObjects(blob.Files, orphan)
	if r := s.sweep(); r.Orphans != 1 {
		t.Errorf("the next run reported %+v", r)
	}
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
		t.Fatalf("%d records in the backup area, %d left, %d links", len(records), len(s.Partitions("files#")), len(s.Partitions("link#")))
	}
	if n := len(s.Objects(blob.Backup)); n != stored {
		t.Errorf("%d objects in the backup area, want %d", n, stored)
	}
	s.wantObjects(blob.Files)
	s.Clock.Advance(91 * day)
	sweepConcurrently(s)
	s.wantObjects(blob.Backup)
	if left := len(s.Partitions("backup#")) + len(s.Partitions("link#")); left != 0 {
		t.Errorf("%d items are left", left)
	}
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
