package files_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/table"
)

func TestAnObjectWithoutARecordGoesWhenItIsOld(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	kept := s.put("alice", "a file with a record").Blob
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		s.orphan(area, "alice/1-another")  // the id has a record, which names other bytes
		s.orphan(area, "alice/77-unknown") // of an upload that was cut off
		s.orphan(area, "nobody/1-unknown")
		s.orphan(area, "alice/readme.txt") // not of Ferry's making
	}
	s.Clock.Advance(59 * time.Minute)
	if r := s.sweep(); r != (files.SweepReport{Seen: 9, Complete: true}) {
		t.Fatalf("the first sweep did %+v", r)
	}
	s.Clock.Advance(2 * time.Minute)
	if r := s.sweep(); r != (files.SweepReport{Seen: 9, Orphans: 6, Complete: true}) {
		t.Fatalf("the second sweep did %+v", r)
	}
	s.holds(blob.Files, kept, "alice/readme.txt")
	s.holds(blob.Backup, "alice/readme.txt")
}

// TestAnObjectNewerThanTheTableStays has a table of before an upload put back.
func TestAnObjectNewerThanTheTableStays(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	kept := s.put("alice", "of before").Blob
	s.object(blob.Files, "alice/2-later")
	s.Clock.Advance(2 * time.Hour)
	if r := s.sweep(); r.Orphans != 0 {
		t.Errorf("the sweep did %+v", r)
	}
	s.holds(blob.Files, kept, "alice/2-later")
}

func TestHalvesOfUploadsGoWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	half := filepath.Join(s.Dir, "tmp", "half")
	if err := os.WriteFile(half, []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sweep()
	if _, err := os.Stat(half); err != nil {
		t.Fatalf("a half of a moment ago: %v", err)
	}
	s.Clock.Advance(61 * time.Minute)
	s.sweep()
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("an old half is still there: %v", err)
	}
}

func TestAFileGoesItsWayWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	s.AddUser("brief", "a password of brief", func(u *auth.User) { u.KeepDays, u.BackupDays = 1, 2 })
	s.put("alice", "a")
	s.put("brief", "b")
	for _, step := range []struct {
		hour int // some beside the full days, for zones that change their clocks
		want files.SweepReport
	}{
		{22, files.SweepReport{Seen: 2}},
		{26, files.SweepReport{Seen: 2, Moved: 1}},
		{72, files.SweepReport{Seen: 2}},
		{76, files.SweepReport{Seen: 2, Purged: 1}},
		{30*24 - 2, files.SweepReport{Seen: 1}},
		{30*24 + 2, files.SweepReport{Seen: 1, Moved: 1}},
		{120 * 24, files.SweepReport{Seen: 1}},
		{120*24 + 4, files.SweepReport{Seen: 1, Purged: 1}},
		{121 * 24, files.SweepReport{}},
	} {
		s.Clock.Advance(s.start.Add(time.Duration(step.hour) * time.Hour).Sub(s.Clock.Now()))
		step.want.Complete = true
		if r := s.sweep(); r != step.want {
			t.Errorf("after %d hours the sweep did %+v, want %+v", step.hour, r, step.want)
		}
	}
	if left := s.Partitions("link#"); len(left) != 0 {
		t.Errorf("links are left: %v", left)
	}
}

func TestAFileForEverStays(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	s.Data.Ports.Retention.KeepDays = 0
	s.put("alice", "a")
	s.Clock.Advance(10_000 * sweepDay)
	if r := s.sweep(); r != (files.SweepReport{Seen: 1, Complete: true}) {
		t.Errorf("the sweep did %+v", r)
	}
}

func TestFilesOfAUserWhoIsGoneGo(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	f := s.put("alice", "a")
	if err := s.Data.Table.Write(t.Context(), table.Delete(auth.UserKey("alice"))); err != nil {
		t.Fatal(err)
	}
	if r := s.sweep(); r != (files.SweepReport{Seen: 1, Complete: true}) {
		t.Errorf("at once the sweep did %+v", r)
	}
	s.Clock.Advance(61 * time.Minute)
	if r := s.sweep(); r != (files.SweepReport{Seen: 1, Purged: 1, Complete: true}) {
		t.Errorf("after an hour the sweep did %+v", r)
	}
	s.holds(blob.Files)
	if left := s.Partitions("files#"); len(left) != 0 {
		t.Errorf("of %+v is left %v", f, left)
	}
}

func TestTroubleWithOneObjectDoesNotStopTheSweep(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	broken, uncopied, fine := s.put("alice", "a"), s.put("alice", "b"), s.put("alice", "c")
	s.orphan(blob.Files, "alice/9-left")
	type noRecord struct {
		Length string `json:"length"`
	}
	if err := s.Data.Table.Write(t.Context(), table.Put(keyOf(broken), noRecord{"many"})); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(31 * sweepDay)
	failed := false
	s.Calls.Before("blob.Copy", func() error {
		if failed {
			return nil
		}
		failed = true
		return os.ErrPermission
	})
	if r := s.sweep(); r != (files.SweepReport{Seen: 4, Moved: 1, Orphans: 1, Failed: 2, Complete: true}) {
		t.Fatalf("the sweep did %+v", r)
	}
	// What could be dealt with the next time is.
	if r := s.sweep(); r != (files.SweepReport{Seen: 3, Moved: 1, Failed: 1, Complete: true}) {
		t.Fatalf("the next sweep did %+v", r)
	}
	s.holds(blob.Files, broken.Blob)
	if len(s.Objects(blob.Backup)) != 2 {
		t.Errorf("of %s and %s the backup area holds %v", uncopied.Blob, fine.Blob, s.Objects(blob.Backup))
	}
}

func TestReservationsOfUploadsThatCrashedAreGivenBack(t *testing.T) {
	t.Parallel()
	s := sweepBegin(t)
	s.AddUser("bound", "a password of bound", func(u *auth.User) { u.Quota = 100 })
	s.put("bound", "12345")
	for _, n := range []int64{20, 30, -1} { // begun and never ended; the last takes all that is left
		if _, err := file.Service(s.Data.Ports).Begin(t.Context(), "bound", auth.User{Name: "bound"}, n, files.Sending{}); err != nil {
			t.Fatal(err)
		}
	}
	s.Clock.Advance(23 * time.Hour)
	s.sweep()
	if u := s.user("bound"); u.Used != 100 {
		t.Fatalf("before their time %d bytes are used", u.Used)
	}
	s.Clock.Advance(61 * time.Minute)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { s.sweep() })
	}
	wg.Wait()
	if u := s.user("bound"); u.Used != 5 {
		t.Errorf("%d bytes are used, want 5", u.Used)
	}
	if left := s.Partitions("reserved#"); len(left) != 0 {
		t.Errorf("reservations are left: %v", left)
	}
}
