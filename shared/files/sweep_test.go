package files_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

func TestSweepRemovesOldObjectsWithoutRecord(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	kept := s.put("alice", "a file with a record").Blob
	for _, area := range blob.Areas() {
		s.orphan(area, s.dated(-1, 1, "alice"))  // the record of this id names other bytes
		s.orphan(area, s.dated(-1, 77, "alice")) // from an upload that was cut off
		s.orphan(area, s.dated(-1, 1, "gone"))
		s.orphan(area, "alice/readme.txt") // not a key that Ferry makes
	}
	s.Clock.Advance(59 * time.Minute)
	s.sweeps("the first sweep", files.SweepReport{Seen: 14})
	s.Clock.Advance(2 * time.Minute)
	s.sweeps("the second sweep", files.SweepReport{Seen: 6, Orphans: 6})
	s.wantObjects(blob.Files, kept, "alice/readme.txt")
	s.wantObjects(blob.Backup, "alice/readme.txt")
}

// sweeps runs a sweep, which must report this.
func (s server) sweeps(what string, want files.SweepReport) {
	s.Helper()
	want.Complete = true
	expect.Equal(s.TB, what, s.sweep(), want)
}

// dated returns a key of a file that is due on the day that many days from now.
func (s server) dated(days int, id int64, owner string) string {
	when := s.Clock.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly)
	return fmt.Sprintf("D%x-%s/%d-%022d-%s", id%16, when, id, id, owner)
}

func TestLeftoversWaitForTheDayInTheirKeys(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	first, later := s.dated(1, 7, "alice"), s.dated(3, 8, "gone")
	s.orphan(blob.Files, first)
	s.orphan(blob.Backup, later)
	for day, want := range []files.SweepReport{{}, {Seen: 1, Orphans: 1}, {}, {Seen: 1, Orphans: 1}, {}} {
		s.sweeps(fmt.Sprintf("the sweep after %d days", day), want)
		s.Clock.Advance(24 * time.Hour)
	}
	s.wantObjects(blob.Files)
	s.wantObjects(blob.Backup)
}

// TestSweepKeepsWhatIsNotOldYetForAnotherDay stores an object whose day has come before it
// is as old as the grace.
func TestSweepKeepsWhatIsNotOldYetForAnotherDay(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	key := s.dated(-1, 7, "alice")
	s.orphan(blob.Files, key)
	s.sweep()
	if items := s.Partitions("due "); len(items) != 1 {
		t.Fatalf("the days to come have %v, want one item", items)
	}
	s.wantObjects(blob.Files, key)
	s.Clock.Advance(2 * time.Hour)
	expect.Equal(t, "leftovers removed after the grace", s.sweep().Orphans, 1)
	expect.Equal(t, "items for days to come", len(s.Partitions("due ")), 0)
}

// TestWalkFindsWhatEarlierDaysStillHave loses the item of a day to come.
func TestWalkFindsWhatEarlierDaysStillHave(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.orphan(blob.Files, s.dated(-1, 7, "alice"))
	s.sweep()
	for _, key := range s.keys("due ") {
		s.write(table.Delete(key))
	}
	for days, want := range []int{0, 0, 1} {
		expect.Equal(t, fmt.Sprintf("leftovers removed by sweep %d", days), s.sweep().Orphans, want)
		s.Clock.Advance(16 * day)
	}
}

// TestAWalkComesEvery30Days sweeps every day, at the same time, while each list takes a second.
func TestAWalkComesEvery30Days(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	var walked []int
	for n := range 61 {
		began := s.Clock.Now()
		s.Calls.Before("blob.List", func() error { s.Clock.Advance(time.Second); return nil })
		s.Calls.Reset()
		if s.sweep(); s.Calls.Reset()["blob.List"] > 2 {
			walked = append(walked, n)
		}
		s.Clock.Advance(day - s.Clock.Now().Sub(began))
	}
	expect.Equal(t, "the runs that walked", walked, []int{0, 30, 60})
}

// TestSweepKeepsObjectsNewerThanTheTable stores an object with an id that the table has
// not given out, as if the table had been restored from an earlier backup.
func TestSweepKeepsObjectsNewerThanTheTable(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	kept := s.put("alice", "an earlier file").Blob
	later := s.dated(-1, 16, "alice") // in the first shard
	s.object(blob.Files, later)
	s.Clock.Advance(2 * time.Hour)
	expect.Equal(t, "leftovers removed", s.sweep().Orphans, 0)
	s.wantObjects(blob.Files, later, kept)
}

func TestSweepMovesAndThenPurgesExpiredFiles(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.AddUser("brief", "a password of brief", func(u *users.User) { u.KeepDays, u.BackupDays = 1, 2 })
	s.AddUser("half", "a password of half", func(u *users.User) { u.BackupDays = 365 })
	for _, owner := range []string{"alice", "brief", "half"} {
		s.put(owner, "a")
	}
	s.sweep() // and walk, which is due again after 30 days
	for _, step := range []struct {
		hour int // not quite whole days, to allow for time zones that change their clocks
		want files.SweepReport
	}{
		{22, files.SweepReport{}},
		{26, files.SweepReport{Moved: 1}},
		{72, files.SweepReport{}},
		{76, files.SweepReport{Purged: 1}},
		{30*24 - 2, files.SweepReport{}},
		{30*24 + 2, files.SweepReport{Moved: 2}},
		{120 * 24, files.SweepReport{}},
		{120*24 + 4, files.SweepReport{Purged: 1}},
		{395 * 24, files.SweepReport{}},
		{395*24 + 4, files.SweepReport{Purged: 1}},
		{396 * 24, files.SweepReport{}},
	} {
		s.Clock.Advance(s.start.Add(time.Duration(step.hour) * time.Hour).Sub(s.Clock.Now()))
		step.want.Complete = true
		r := s.sweep()
		r.Seen = 0 // on its day a file may be seen before it expires
		expect.Equal(t, fmt.Sprintf("the sweep after %d hours", step.hour), r, step.want)
	}
	expect.Equal(t, "links that are left", len(s.Partitions("link#")), 0)
}

func TestSweepPurgesFilesOfARemovedUserOnTheirDay(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.put("alice", "a")
	s.removeUser("alice")
	s.sweeps("the first sweep", files.SweepReport{})
	s.Clock.Advance(31 * day)
	s.sweeps("a sweep after a month", files.SweepReport{Seen: 1, Purged: 1})
	s.wantObjects(blob.Files)
	expect.Equal(t, "records that are left", len(s.Partitions("files#")), 0)
}

func TestOneFailedObjectDoesNotStopTheSweep(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	broken := s.put("alice", "a")
	s.put("alice", "b")
	s.put("alice", "c")
	s.orphan(blob.Files, s.dated(30, 9, "alice"))
	s.Clock.Advance(4 * day)
	s.sweep() // and walk, which is due again after 30 days
	s.update(keyOf(broken), "length", "many")
	s.Clock.Advance(27 * day)
	failed := false
	s.Calls.Before("blob.Copy", func() error {
		if failed {
			return nil
		}
		failed = true
		return os.ErrPermission
	})
	s.sweeps("the first sweep", files.SweepReport{Seen: 4, Moved: 1, Orphans: 1, Failed: 2})
	s.sweeps("the next sweep on the same day", files.SweepReport{})
	s.Clock.Advance(24 * time.Hour)
	s.sweeps("the next sweep", files.SweepReport{Seen: 2, Moved: 1, Failed: 1})
	s.wantObjects(blob.Files, broken.Blob)
	expect.Equal(t, "objects in the backup area", len(s.Objects(blob.Backup)), 2)
}

func TestSweepGivesBackReservationsOfIdleSessions(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.AddUser("bound", "a password of bound", func(u *users.User) { u.Quota = 100 })
	s.put("bound", "12345")
	for _, n := range []int64{20, 30, 45} { // begun and never ended; the last reserves all the room left
		plan := files.Plan{Owner: "bound", Name: "x", Length: n}
		s.must(failure(s.Service.Files().BeginSession(t.Context(), s.by("bound"), plan, nil)))
	}
	s.Clock.Advance(59 * time.Minute)
	s.sweep()
	if u := s.user("bound"); u.Used != 100 {
		t.Fatalf("before the reservations expire %d bytes are in use, want 100", u.Used)
	}
	s.Clock.Advance(2 * time.Minute)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { s.sweep() })
	}
	wg.Wait()
	expect.Equal(t, "bytes in use", s.user("bound").Used, 5)
	expect.Equal(t, "reservations", len(s.Partitions("reserved#")), 0)
}

// TestADamagedDueItemHoldsUpNothingElse puts one before an object that is due on another day.
func TestADamagedDueItemHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.orphan(blob.Files, s.dated(-1, 7, "alice"))
	s.sweep()
	s.update(table.Key{PK: "due", SK: "2000-01-01/files/x"}, "key", int64(1))
	s.Clock.Advance(2 * time.Hour)
	s.sweeps("the sweep", files.SweepReport{Seen: 1, Orphans: 1, Failed: 1})
}

// TestSweepKeepsWhatASessionCompletesMeanwhile completes a session after the sweep has
// looked for its record.
func TestSweepKeepsWhatASessionCompletesMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	config := s.Service.Files().Config
	config.HashStep = 1
	service := files.New(config)
	sum := sha256.Sum256([]byte("ab"))
	sess, err := service.BeginSession(t.Context(), s.by("alice"), files.Plan{Owner: "alice", Name: "x", Length: 2, SHA256: sum[:]}, nil)
	s.must(err)
	s.must(failure(service.WritePart(t.Context(), sess, 1, strings.NewReader("ab"), nil)))
	expect.Fault(t, "half of the hash", failure(service.Complete(t.Context(), sess, nil)), fault.Unavailable)
	s.Clock.Advance(2 * time.Hour)
	var looked, completed atomic.Bool // by any lane
	s.Calls.Before("table.GetMany", func() error { looked.Store(true); return nil })
	s.Calls.Before("table.Get", func() error {
		if looked.Load() && completed.CompareAndSwap(false, true) {
			now, err := service.Session(t.Context(), s.by("alice"), sess.ID, true)
			if err == nil {
				_, err = service.Complete(t.Context(), now, nil)
			}
			return err
		}
		return nil
	})
	if r := s.sweep(); r.Orphans != 0 || !completed.Load() {
		t.Errorf("the sweep reported %+v", r)
	}
	expect.Equal(t, "objects", len(s.Objects(blob.Files)), 1)
}

// session stores a file of one byte in a session that is completed some days after it
// began. The sweep runs every day.
func (s server) session(days int, meanwhile func()) files.File {
	s.Helper()
	service := s.Service.Files()
	sess, err := service.BeginSession(s.Context(), s.by("alice"), files.Plan{Owner: "alice", Name: "x", Length: 1}, nil)
	s.must(err)
	s.must(failure(service.WritePart(s.Context(), sess, 1, strings.NewReader("a"), nil)))
	for range days {
		s.sweepYoung()
		s.Clock.Advance(day)
	}
	s.sweepYoung()
	meanwhile()
	f, err := s.Service.Files().Complete(s.Context(), sess, nil)
	s.must(err)
	return f.File
}

// sweepYoung sweeps as if no object was old enough to be a leftover.
func (s server) sweepYoung() files.SweepReport {
	s.Helper()
	w := s.sweeper()
	w.Grace = 1000 * day
	return s.complete(w)
}

// keepFor changes the retention, as a restart with other settings does.
func keepFor(s *apitest.Server, days int64) {
	set := s.Service.Settings
	set.Retention.KeepDays = days
	s.Service.Service = service.New(s.Service.Ports, set)
}

func TestFileThatExpiresOnAnotherDayThanItsKeySaysIsMovedThen(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		keep, days int
		meanwhile  func(*apitest.Server)
		moved      int // days after the completion
		items      int // that the completion writes
	}{
		"completed three days later":          {30, 3, func(*apitest.Server) {}, 30, 0},
		"completed after the day in its key":  {1, 3, func(*apitest.Server) {}, 1, 1},
		"completed on the day in its key":     {3, 3, func(*apitest.Server) {}, 3, 0},
		"completed under a shorter retention": {30, 3, func(s *apitest.Server) { keepFor(s, 2) }, 2, 1},
		"completed under the first retention": {0, 3, func(s *apitest.Server) { keepFor(s, 2) }, 2, 1},
		"completed when nothing expires":      {30, 3, func(s *apitest.Server) { keepFor(s, 0) }, -1, 0},
		"kept for ever from the beginning":    {0, 0, func(*apitest.Server) {}, -1, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSweepServer(t)
			keepFor(s.Server, int64(k.keep))
			f := s.session(k.days, func() { k.meanwhile(s.Server) })
			expect.Equal(t, "items that the completion left", len(s.Partitions("due ")), k.items)
			for after := range 40 {
				r := s.sweepYoung()
				if (r.Moved == 1) != (after == k.moved) || r.Failed > 0 {
					t.Errorf("the file %s was completed on a day, and after %d days the sweep reported %+v", f.Blob, after, r)
				}
				s.Clock.Advance(day)
			}
			expect.Equal(t, "items for days to come", len(s.Partitions("due ")), 0)
		})
	}
}
