package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/blob"
)

// TestObjectsOfAnOperatorBetweenTheShardsHideNothing has keys that sort between those of
// Ferry: one after shard 9, one like a shard in capitals, and one like a day that is cut off.
func TestObjectsOfAnOperatorBetweenTheShardsHideNothing(t *testing.T) {
	t.Parallel()
	for _, foreign := range []string{"DUMP/all.sql", "DA-2999-01-01/a.txt", "D0-%s/b.txt"} {
		t.Run(foreign, func(t *testing.T) {
			t.Parallel()
			s := newSweepServer(t)
			s.sweep() // and walk
			if strings.Contains(foreign, "%s") {
				foreign = fmt.Sprintf(foreign, s.Clock.Now().UTC().Format("2006"))
			}
			s.object(blob.Files, foreign)
			for shard := range int64(16) {
				s.orphan(blob.Files, s.dated(1, 16+shard, "alice"))
			}
			s.Clock.Advance(3 * day)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if r, err := s.sweeper().Run(ctx); err != nil || r.Orphans != 16 {
				t.Errorf("the sweep reported %+v, %v", r, err)
			}
			s.wantObjects(blob.Files, foreign)
		})
	}
}

// TestARepairGoesOnAfterAMoveThatFails has two moves that nobody finished; the first fails
// once more.
func TestARepairGoesOnAfterAMoveThatFails(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	for id := range int64(2) {
		s.put("alice", "ab")
		s.must(failure(s.lazy().Delete(t.Context(), s.user("alice"), id+1)))
	}
	s.Clock.Advance(2 * time.Hour)
	var failed atomic.Bool
	s.Calls.Before("blob.Copy", func() error {
		if failed.CompareAndSwap(false, true) {
			return errors.New("away")
		}
		return nil
	})
	if r, got := s.check(repairing); r.Found != 2 || r.Mended != 1 {
		t.Errorf("the repair reported %+v, %v", r, got)
	}
	s.Calls.Before("blob.Copy", nil)
	s.wantFindings("the second repair", repairing, "move alice")
	s.wantFindings("in the end", nil)
}

// TestRemovingUserRemovesWhatIsRestoredMeanwhile restores a file when the user area has been
// removed, as a request may that began before the user was disabled.
func TestRemovingUserRemovesWhatIsRestoredMeanwhile(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	service, alice := c.Service.Files(), c.user()
	c.put("file=a", "1")
	c.put("file=b", "2")
	c.must(failure(service.Delete(t.Context(), alice, 1)))
	c.Calls.Once("blob.Delete", func() { // of the second file
		c.must(failure(service.Restore(t.Context(), alice, 1)))
	})
	if removed, err := service.RemoveAll(t.Context(), "alice"); err != nil || removed != 2 {
		t.Errorf("%d files were removed, %v", removed, err)
	}
	c.wantConsistent(0)
}
