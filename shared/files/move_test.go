package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
)

// TestConcurrentMovesLoseNothing deletes, restores and sweeps one file at the same
// time. Every third removal of an object fails.
func TestConcurrentMovesLoseNothing(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	const content = "must not get lost"
	c.put("file=a", content)
	c.Clock.Advance(31 * day) // so the sweeps move it too, until it is restored
	c.bearer = c.Login("alice", password)
	var deletions, moved atomic.Int64
	c.Calls.Before("blob.Delete", func() error {
		if deletions.Add(1)%3 == 0 {
			return errors.New("the store is away")
		}
		return nil
	})
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			for range 40 {
				switch worker % 3 {
				case 0:
					c.countMove(&moved, "DELETE /files/1")
				case 1:
					c.countMove(&moved, "POST /files/1/restore")
				default:
					c.sweep(1000 * day)
				}
			}
		})
	}
	wg.Wait()
	c.Calls.Before("blob.Delete", nil)
	if moved.Load() < 2 {
		t.Fatalf("%d moves succeeded, want at least 2", moved.Load())
	}
	if n := len(c.Files()); n < 2 {
		t.Errorf("there are %d objects, so nothing was left to clear up", n)
	}
	c.repair()
	c.wantConsistent(1)
	f := c.stored()[0]
	expect.Equal(t, "what the link gives", c.read(f.Area, 1), content)
}

// countMove moves a file and counts it. The file may also be in the other area. While eight
// moves wait for its bytes it is asked to try again, as the answer says.
func (c caller) countMove(moved *atomic.Int64, request string) {
	status := 503
	for try := 0; status == 503 && try < 100; try++ {
		status = c.ask(request).Code
	}
	switch status {
	case 200:
		moved.Add(1)
	case 404: // it is in the other area
	default:
		c.Errorf("%s gave status %d", request, status)
	}
}

// sweep runs a sweep. The test's clock may be ahead of the times of the objects, so
// a sweep that must keep new ones needs a grace that is longer than that.
func (c caller) sweep(grace time.Duration) {
	w := c.sweeper()
	w.Grace = grace
	r, err := w.Run(c.Context())
	if err != nil || r.Failed != 0 {
		c.Errorf("the sweep reported %+v, %v", r, err)
	}
}

// repair removes leftovers, whose days a sweep would wait for.
func (c caller) repair() {
	c.Helper()
	c.check(repairing)
}

func TestAFileWithoutItsBytesCanBeDeletedAndPurged(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(1))
	link := c.put("file=a", "1").LinkURL
	c.must(c.Data.Disk.Delete(t.Context(), blob.Files, c.Objects(blob.Files)[0]))
	c.Send("GET "+link, "").Want(500)
	moved := c.ask("DELETE /files/1").Want(200).File().LinkURL
	expect.Equal(t, "bytes in use after the deletion", c.user().Used, 1)
	if log := c.Log.String(); !strings.Contains(log, `level=ERROR msg="a file was moved without its bytes`) {
		t.Errorf("the log says %s", log)
	}
	c.Send("GET "+link, "").Want(401)
	c.Send("GET "+moved, "").Want(500)
	c.ask("DELETE /files/1?area=backup").Want(200)
	c.wantUsed("after the purge", 0)
	c.wantConsistent(0)
}

// TestSweepFreesTheRoomOfFilesWithoutBytes lets a file expire in both areas, before one
// that stays.
func TestSweepFreesTheRoomOfFilesWithoutBytes(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(100))
	c.put("file=a", "lost")
	c.must(c.Data.Disk.Delete(t.Context(), blob.Files, c.Objects(blob.Files)[0]))
	c.Clock.Advance(31 * day)
	c.As("alice").Upload("file=b", "kept")
	c.sweep(200 * day)
	if n := len(c.Partitions("backup#")); n != 1 || len(c.Partitions("files#")) != 1 {
		t.Errorf("%d records are in the backup area, want 1", n)
	}
	c.sweep(200 * day)
	expect.Equal(t, "bytes in use before the end of both terms", c.user().Used, 8)
	c.Clock.Advance(91 * day)
	c.sweep(200 * day)
	if u := c.user(); u.Used != 4 || len(c.Partitions("backup#")) != 1 {
		t.Errorf("in the end %d bytes are in use, want the other file's 4, which is in the backup area", u.Used)
	}
}

// lazy returns a service whose movers do nothing.
func (s server) lazy() *files.Service { return s.moving(nil) }

// moving returns a service whose movers do nothing but return an error.
func (s server) moving(err error) *files.Service {
	config := s.Service.Files().Config
	config.Mover = func(context.Context, *files.Service, string, int64) error { return err }
	return files.New(config)
}

// TestAMoverIsToldOfEachMove has the mover do its work after the answer, twice.
func TestAMoverIsToldOfEachMove(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a", "12")
	var told []string
	service := c.Service.Files()
	service.Mover = func(_ context.Context, _ *files.Service, owner string, id int64) error {
		told = append(told, fmt.Sprint(owner, " ", id))
		return nil
	}
	c.Calls.Reset()
	if _, err := service.Delete(t.Context(), c.user(), 1); err != nil || fmt.Sprint(told) != "[alice 1]" {
		t.Fatalf("told was %v, %v", told, err)
	}
	if calls := c.Calls.Reset(); calls["blob.Copy"] != 0 ||
		calls["table.Write"] != 1 ||
		c.read(blob.Backup, 1) != "12" {
		t.Errorf("the calls were %v, and the link gives %q", calls, c.read(blob.Backup, 1))
	}
	for range 2 {
		expect.NoErr(t, service.MoveBytes(t.Context(), "alice", 1))
		c.wantConsistent(1)
	}
	expect.NoErr(t, service.MoveBytes(t.Context(), "alice", 2))
}

// TestTheNextSweepMovesTheBytesThatNobodyMoved does not wait for the day in the key of the old bytes.
func TestTheNextSweepMovesTheBytesThatNobodyMoved(t *testing.T) {
	t.Parallel()
	for what, remove := range map[string]func(caller) error{
		"no mover is free": func(c caller) error {
			return failure(c.moving(errors.New("all are busy")).Delete(t.Context(), c.user(), 1))
		},
		"a move fails": func(c caller) error {
			ctx, leave := context.WithCancel(t.Context())
			c.Calls.Before("blob.Copy", func() error { leave(); return errors.New("away") })
			defer c.Calls.Before("blob.Copy", nil)
			return failure(c.Service.Files().Delete(ctx, c.user(), 1))
		},
	} {
		c := newCaller(t)
		c.sweepYoung() // and walk, which is due again after 30 days
		c.put("file=a", "12")
		c.must(remove(c))
		expect.Equal(t, what+": objects", len(c.Objects(blob.Backup)), 0)
		expect.Equal(t, what+": what the link gives", c.read(blob.Backup, 1), "12")
		expect.Equal(t, what+": files that the sweep moved", c.sweepYoung().Moved, 1)
		expect.Equal(t, what+": items for days to come", len(c.Partitions("due ")), 0)
		c.wantConsistent(1)
	}
}

func TestAFileThatMovesOnAndOnIsRefusedAtLast(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a", "12")
	for n := range 9 {
		move := c.lazy().Delete
		if n%2 == 1 {
			move = c.lazy().Restore
		}
		if _, err := move(t.Context(), c.user(), 1); (n == 8) != fault.Is(err, fault.Unavailable) {
			t.Errorf("move %d gave %v", n, err)
		}
	}
	expect.Equal(t, "what the link gives", c.read(blob.Files, 1), "12")
	c.Clock.Advance(2 * time.Hour)
	c.repair()
	c.wantConsistent(1)
}
