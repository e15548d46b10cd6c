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
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/users"
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

// TestAWalkIsNotPutOffByAClockThatWasAhead sweeps once in another century.
func TestAWalkIsNotPutOffByAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.Clock.Advance(40_000 * day)
	s.sweep()
	s.Clock.Advance(-40_000 * day)
	s.orphan(blob.Files, s.dated(-1, 7, "alice"))
	s.Clock.Advance(2 * time.Hour)
	expect.Equal(t, "leftovers removed", s.sweep().Orphans, 1)
}

// TestARetentionOfMillionsOfDaysIsNotDueEachDay ends in a year of five digits.
func TestARetentionOfMillionsOfDaysIsNotDueEachDay(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.AddUser("long", "a password of long", func(u *users.User) { u.KeepDays = 3_650_000 })
	f := s.put("long", "a")
	if _, id, ok := files.ParseBlobKey(f.Blob); !ok || id != f.ID || f.Expires == 0 {
		t.Errorf("the record is %+v", f)
	}
	s.sweep() // and walk
	expect.Equal(t, "items for days to come", len(s.Partitions("due ")), 0)
	s.Clock.Advance(day)
	s.sweeps("the sweep of the next day", files.SweepReport{})
}

// TestARepairGoesOnAfterAMoveThatFails has two moves that nobody finished; the first fails
// once more.
func TestARepairGoesOnAfterAMoveThatFails(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	for id := range int64(2) {
		s.put("alice", "ab")
		s.must(failure((caller{server: s}).lazy().Delete(t.Context(), s.user("alice"), id+1)))
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
	purged := false
	c.Calls.Before("blob.Delete", func() error {
		if purged {
			return nil
		}
		purged = true // the second file
		_, err := service.Restore(t.Context(), alice, 1)
		return err
	})
	if removed, err := service.RemoveAll(t.Context(), "alice"); err != nil || removed != 2 {
		t.Errorf("%d files were removed, %v", removed, err)
	}
	c.wantConsistent(0)
}
