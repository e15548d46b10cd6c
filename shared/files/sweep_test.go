package files_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
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

// nothingOf matches what a report says of what did not happen.
var nothingOf = regexp.MustCompile(`\w+:(0|false) ?`)

// do is a step, such as: orphan AREA DAYS ID OWNER, for an object in whose key is the day that many days from now.
func (s server) do(step string) error {
	var verb, what, owner string
	var days, id int64
	_, _ = fmt.Sscan(step, &verb, &what, &days, &id, &owner)
	span, _ := time.ParseDuration(what)
	switch verb {
	case "user":
		s.AddUser(what, password, func(u *users.User) { u.KeepDays, u.BackupDays = days, id })
	case "remove":
		s.removeUser(what)
	case "put":
		s.put(what, "a")
	case "orphan":
		s.orphan(blob.Area(what), s.dated(int(days), id, owner))
	case "newer": // than the table
		s.object(blob.Area(what), s.dated(int(days), id, owner))
	case "foreign":
		s.object(blob.Area(what), "alice/readme.txt")
	case "wait":
		s.Clock.Advance(span)
	case "settle":
		s.sweep()
	case "sweep", "did":
		r := s.sweep()
		r.Complete = false
		if verb == "did" {
			r.Seen = 0 // on its day a file may be seen before it expires
		}
		if r != (files.SweepReport{}) {
			return errors.New(nothingOf.ReplaceAllString(fmt.Sprintf("%+v", r), ""))
		}
	case "due":
		return errors.New(strings.Repeat("x", len(s.Partitions("due "))))
	case "lose-due":
		for _, key := range s.keys("due ") {
			s.write(table.Delete(key))
		}
	case "damage-due":
		s.update(table.Key{PK: "due", SK: "2000-01-01/files/x"}, "key", int64(1))
	case "files", "backup":
		var all []string
		for _, key := range s.Objects(blob.Area(verb)) {
			if owner, id, ok := files.ParseBlobKey(key); ok {
				key = fmt.Sprint(id, "-", owner)
			}
			all = append(all, key)
		}
		slices.Sort(all)
		return errors.New(strings.Join(all, " "))
	case "check":
		s.wantFindings(step, nil)
	default:
		s.Fatalf("there is no step %s", step)
	}
	return nil
}

func TestASweepDoesWhatIsDue(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"it removes old objects without a record, of which some have the id of one": `
			put alice
			orphan files -1 1 alice
			orphan files -1 77 alice
			orphan files -1 1 gone
			foreign files
			orphan backup -1 1 alice
			orphan backup -1 77 alice
			orphan backup -1 1 gone
			foreign backup
			wait 59m
			sweep > {Seen:14 }
			wait 2m
			sweep > {Seen:6 Orphans:6 }
			files > 1-alice alice/readme.txt
			backup > alice/readme.txt
			check`,
		"leftovers wait for the day in their keys": `
			orphan files 1 7 alice
			orphan backup 3 8 gone
			sweep
			wait 24h
			sweep > {Seen:1 Orphans:1 }
			wait 24h
			sweep
			wait 24h
			sweep > {Seen:1 Orphans:1 }
			wait 24h
			sweep
			files
			backup`,
		"it keeps what is not old yet for another day": `
			orphan files -1 7 alice
			settle
			due > x
			files > 7-alice
			wait 2h
			sweep > {Seen:1 Orphans:1 }
			due`,
		"a walk finds what earlier days still have": `
			orphan files -1 7 alice
			settle
			lose-due
			sweep
			wait 384h
			sweep
			wait 384h
			did > {Orphans:1 }`,
		"it keeps objects newer than the table": `
			put alice
			newer files -1 16 alice
			wait 2h
			did
			files > 1-alice 16-alice`,
		"files move when they expire, and are then purged": `
			user brief 1 2
			user half 0 365
			put alice
			put brief
			put half
			settle
			wait 22h
			did
			wait 4h
			did > {Moved:1 }
			wait 46h
			did
			wait 4h
			did > {Purged:1 }
			wait 642h
			did
			wait 4h
			did > {Moved:2 }
			wait 2158h
			did
			wait 4h
			did > {Purged:1 }
			wait 6596h
			did
			wait 4h
			did > {Purged:1 }
			wait 20h
			did
			files
			backup
			check`,
		"files of a removed user are purged on their day": `
			put alice
			remove alice
			sweep
			wait 744h
			sweep > {Seen:1 Purged:1 }
			files
			check`,
		"a damaged item of what is due holds up nothing else": `
			orphan files -1 7 alice
			settle
			damage-due
			wait 2h
			sweep > {Seen:1 Orphans:1 Failed:1 }`,
		"a walk is not put off by a clock that was ahead": `
			wait 960000h
			settle
			wait -960000h
			orphan files -1 7 alice
			wait 2h
			did > {Orphans:1 }`,
		"a retention of millions of days, which end in a year of five digits, is not due each day": `
			user long 3650000 0
			put long
			files > 1-long
			settle
			due
			wait 24h
			sweep`,
	}, func(t *testing.T) func(string) error { return newSweepServer(t).do })
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

// TestSweepKeepsWhatASessionCompletesMeanwhile completes a session after the sweep has
// looked for its record.
func TestSweepKeepsWhatASessionCompletesMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSweepServer(t)
	config := s.Service.Files().Config
	config.HashStep, config.Retention = 1, files.Retention{} // a walk looks at what is kept for ever
	service := files.New(config)
	sum := sha256.Sum256([]byte("ab"))
	sess, err := service.BeginSession(t.Context(), s.by("alice"), files.Plan{
		Owner:  "alice",
		Name:   "x",
		Length: 2,
		SHA256: sum[:],
	}, nil)
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
		"completed three days later": {keep: 30, days: 3, meanwhile: func(*apitest.Server) {}, moved: 30},
		"completed after the day in its key": {
			keep:      1,
			days:      3,
			meanwhile: func(*apitest.Server) {},
			moved:     1,
			items:     1,
		},
		"completed on the day in its key": {keep: 3, days: 3, meanwhile: func(*apitest.Server) {}, moved: 3},
		"completed under a shorter retention": {
			keep:      30,
			days:      3,
			meanwhile: func(s *apitest.Server) { keepFor(s, 2) },
			moved:     2,
			items:     1,
		},
		"completed under the first retention": {
			days:      3,
			meanwhile: func(s *apitest.Server) { keepFor(s, 2) },
			moved:     2,
			items:     1,
		},
		"completed when nothing expires": {
			keep:      30,
			days:      3,
			meanwhile: func(s *apitest.Server) { keepFor(s, 0) },
			moved:     -1,
		},
		"kept for ever from the beginning": {meanwhile: func(*apitest.Server) {}, moved: -1},
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
					t.Errorf("the file %s was completed on a day, and after %d days the sweep reported %+v",
						f.Blob, after, r)
				}
				s.Clock.Advance(day)
			}
			expect.Equal(t, "items for days to come", len(s.Partitions("due ")), 0)
		})
	}
}
