package files_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/table"
)

func TestSweepRemovesOldObjectsWithoutRecord(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	kept := s.put("alice", "a file with a record").Blob
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		s.orphan(area, "alice/1-another")  // the record of this id names other bytes
		s.orphan(area, "alice/77-unknown") // from an upload that was cut off
		s.orphan(area, "nobody/1-unknown")
		s.orphan(area, "alice/readme.txt") // not a key that Ferry makes
	}
	s.Clock.Advance(59 * time.Minute)
	if r := s.sweep(); r != (files.SweepReport{Seen: 9, Complete: true}) {
		t.Fatalf("the first sweep reported %+v", r)
	}
	s.Clock.Advance(2 * time.Minute)
	if r := s.sweep(); r != (files.SweepReport{Seen: 9, Orphans: 6, Complete: true}) {
		t.Fatalf("the second sweep reported %+v", r)
	}
	s.wantObjects(blob.Files, kept, "alice/readme.txt")
	s.wantObjects(blob.Backup, "alice/readme.txt")
}

// TestSweepKeepsObjectsNewerThanTheTable stores an object with an id that the table has
// not given out, as if the table had been restored from an earlier backup.
func TestSweepKeepsObjectsNewerThanTheTable(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	kept := s.put("alice", "an earlier file").Blob
	s.object(blob.Files, "alice/2-later")
	s.Clock.Advance(2 * time.Hour)
	if r := s.sweep(); r.Orphans != 0 {
		t.Errorf("the sweep reported %+v", r)
	}
	s.wantObjects(blob.Files, kept, "alice/2-later")
}

func TestSweepRemovesOldUnfinishedObjects(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	half := filepath.Join(s.Dir, "tmp", "half")
	if err := os.WriteFile(half, []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sweep()
	if _, err := os.Stat(half); err != nil {
		t.Fatalf("the new unfinished object: %v", err)
	}
	s.Clock.Advance(61 * time.Minute)
	s.sweep()
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the old unfinished object is still there: %v", err)
	}
}

func TestSweepMovesAndThenPurgesExpiredFiles(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.AddUser("brief", "a password of brief", func(u *auth.User) { u.KeepDays, u.BackupDays = 1, 2 })
	s.put("alice", "a")
	s.put("brief", "b")
	for _, step := range []struct {
		hour int // not quite whole days, to allow for time zones that change their clocks
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
			t.Errorf("after %d hours the sweep reported %+v, want %+v", step.hour, r, step.want)
		}
	}
	if left := s.Partitions("link#"); len(left) != 0 {
		t.Errorf("links are left: %v", left)
	}
}

func TestFileKeptForEverStays(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.Data.Ports.Retention.KeepDays = 0
	s.put("alice", "a")
	s.Clock.Advance(10_000 * day)
	if r := s.sweep(); r != (files.SweepReport{Seen: 1, Complete: true}) {
		t.Errorf("the sweep reported %+v", r)
	}
}

func TestSweepPurgesFilesOfMissingUserAfterGrace(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	f := s.put("alice", "a")
	if err := s.Data.Table.Write(t.Context(), table.Delete(auth.UserKey("alice"))); err != nil {
		t.Fatal(err)
	}
	if r := s.sweep(); r != (files.SweepReport{Seen: 1, Complete: true}) {
		t.Errorf("the first sweep reported %+v", r)
	}
	s.Clock.Advance(61 * time.Minute)
	if r := s.sweep(); r != (files.SweepReport{Seen: 1, Purged: 1, Complete: true}) {
		t.Errorf("after an hour the sweep reported %+v", r)
	}
	s.wantObjects(blob.Files)
	if left := s.Partitions("files#"); len(left) != 0 {
		t.Errorf("of %+v these records are left: %v", f, left)
	}
}

func TestOneFailedObjectDoesNotStopTheSweep(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	broken, uncopied, fine := s.put("alice", "a"), s.put("alice", "b"), s.put("alice", "c")
	s.orphan(blob.Files, "alice/9-orphan")
	type badRecord struct {
		Length string `json:"length"`
	}
	if err := s.Data.Table.Write(t.Context(), table.Put(keyOf(broken), badRecord{"many"})); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(31 * day)
	failed := false
	s.Calls.Before("blob.Copy", func() error {
		if failed {
			return nil
		}
		failed = true
		return os.ErrPermission
	})
	if r := s.sweep(); r != (files.SweepReport{Seen: 4, Moved: 1, Orphans: 1, Failed: 2, Complete: true}) {
		t.Fatalf("the first sweep reported %+v", r)
	}
	if r := s.sweep(); r != (files.SweepReport{Seen: 3, Moved: 1, Failed: 1, Complete: true}) {
		t.Fatalf("the next sweep reported %+v", r)
	}
	s.wantObjects(blob.Files, broken.Blob)
	if len(s.Objects(blob.Backup)) != 2 {
		t.Errorf("of %s and %s the backup area holds %v", uncopied.Blob, fine.Blob, s.Objects(blob.Backup))
	}
}

func TestSweepGivesBackReservationsOfIdleSessions(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	s.AddUser("bound", "a password of bound", func(u *auth.User) { u.Quota = 100 })
	s.put("bound", "12345")
	for _, n := range []int64{20, 30, 45} { // begun and never ended; the last reserves all the room left
		plan := files.Plan{Owner: "bound", Name: "x", Length: n}
		if _, err := file.Service(s.Data.Ports).BeginSession(t.Context(), s.user("bound"), plan, nil); err != nil {
			t.Fatal(err)
		}
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
	if u := s.user("bound"); u.Used != 5 {
		t.Errorf("%d bytes are in use, want 5", u.Used)
	}
	if left := s.Partitions("reserved#"); len(left) != 0 {
		t.Errorf("reservations are left: %v", left)
	}
}

// TestSweepKeepsWhatASessionCompletesMeanwhile completes a session after the sweep has
// looked for its record.
func TestSweepKeepsWhatASessionCompletesMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	p := s.Data.Ports
	service := files.New(files.Config{Ports: p.Ports, Blobs: p.Blobs, Parts: p.Parts, Outbox: file.Outbox(p), HashStep: 1})
	sum := sha256.Sum256([]byte("ab"))
	it, err := service.BeginSession(t.Context(), s.user("alice"), files.Plan{Owner: "alice", Name: "x", Length: 2, SHA256: sum[:]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.WritePart(t.Context(), it, 1, strings.NewReader("ab"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Complete(t.Context(), it, nil); !envelope.IsFault(err, envelope.Unavailable) {
		t.Fatalf("half of the hash: %v", err)
	}
	s.Clock.Advance(2 * time.Hour)
	looked, completed := false, false
	s.Calls.Before("table.GetMany", func() error { looked = true; return nil })
	s.Calls.Before("table.Get", func() error {
		if looked && !completed {
			completed = true
			now, err := service.Session(t.Context(), s.user("alice"), it.ID)
			if err == nil {
				_, err = service.Complete(t.Context(), now, nil)
			}
			return err
		}
		return nil
	})
	if r := s.sweep(); r.Orphans != 0 || !completed {
		t.Errorf("the sweep reported %+v", r)
	}
	if n := len(s.Objects(blob.Files)); n != 1 {
		t.Errorf("%d objects are left, want the completed one", n)
	}
}
