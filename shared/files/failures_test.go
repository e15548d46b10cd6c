package files_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// TestWriteWhoseAnswerIsLostLosesNoBytes has a file in each area, and an upload that is not committed yet.
func TestWriteWhoseAnswerIsLostLosesNoBytes(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		call string // whose answer is lost
		act  func(caller, *files.Upload) error
		left int
	}{
		"an upload commits": {call: "table.Write", left: 3,
			act: func(c caller, u *files.Upload) error { return failure(u.Commit(c.Context(), 0)) }},
		"an upload commits and lists": {call: "table.Query", left: 3,
			act: func(c caller, u *files.Upload) error { return failure(u.Commit(c.Context(), files.PageSize)) }},
		"a file is deleted": {call: "table.Write", left: 2, act: func(c caller, _ *files.Upload) error {
			return failure(c.Service.Files().Delete(c.Context(), c.user(), 1))
		}},
		"a file is restored": {call: "table.Write", left: 2, act: func(c caller, _ *files.Upload) error {
			return failure(c.Service.Files().Restore(c.Context(), c.user(), 2))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			c.caller().Fill(2)
			c.ask("DELETE /files/2")
			u := c.beginUpload("content")
			c.Calls.Before(k.call, func() error { return apitest.ErrLost })
			expect.Err(t, "the call", k.act(c, u), apitest.ErrLost)
			c.Calls.Before(k.call, nil)
			c.Clock.Advance(2 * time.Hour)
			c.repair()
			c.wantConsistent(k.left)
		})
	}
}

// TestSweepClearsUpAfterFailedCommit lets a commit fail with an unknown outcome.
// The sweep removes the bytes after the grace period.
func TestSweepClearsUpAfterFailedCommit(t *testing.T) {
	t.Parallel()
	c := newCaller(t, quota(100))
	c.Calls.Before("table.Write", func() error { return errors.New("away") })
	if w := c.upload("file=a", unsized(60), 60); w.Code != 500 {
		t.Fatalf("the upload gave status %d, want 500", w.Code)
	}
	c.Calls.Before("table.Write", nil)
	if n := len(c.Objects(blob.Files)); n != 1 || len(c.stored()) != 0 || c.user().Used != 0 {
		t.Fatalf("there are %d objects, %d records and %d bytes in use, want 1, 0 and 0",
			n, len(c.stored()), c.user().Used)
	}
	c.Clock.Advance(31 * day)
	c.sweep(time.Hour)
	c.wantConsistent(0)
}

func TestRefusedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{table.ErrBusy, table.ErrFull, &table.ConditionError{}} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, quota(100))
			c.Calls.Before("table.Write", func() error { return refusal })
			if w := c.upload("file=a", unsized(60), 60); w.Code < 400 {
				t.Errorf("the upload gave status %d, want an error", w.Code)
			}
			c.wantUsed("after the refusal", 0)
			c.wantConsistent(0)
		})
	}
}

// crampedTable is a table on a disk that the parts of a session have filled.
type crampedTable struct {
	table.Table
	parts   blob.Parts
	session *files.Session
}

func (c crampedTable) Write(ctx context.Context, ops ...table.Op) error {
	if c.session.ID != "" {
		_, err := c.parts.Upload(blob.Files, c.session.Blob, c.session.Upload, blob.Layout{}).List(ctx)
		if !errors.Is(err, blob.ErrNoUpload) {
			return errors.Join(err, table.ErrFull)
		}
	}
	return c.Table.Write(ctx, ops...)
}

func TestEndingSessionFreesRoomOnFullDisk(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	var sess files.Session
	config := c.Service.Files().Config
	config.Table = crampedTable{config.Table, config.Parts, &sess}
	service := files.New(config)
	var err error
	sess, err = service.BeginSession(t.Context(), c.by(), files.Plan{Owner: c.name, Name: "a", Length: 1}, nil)
	c.must(err)
	c.must(service.EndSession(t.Context(), sess))
	_, err = service.Session(t.Context(), c.by(), sess.ID, true)
	expect.Fault(t, "reading the ended session", err, fault.NotFound)
}

// read returns what the file's own link in an area gives.
func (c caller) read(area blob.Area, id int64) string {
	c.Helper()
	return c.Send("GET "+keys.DownloadLink(c.Base, "en", area)+c.Data.Ports.Key.File(area, c.name, id), "").Text
}

// beforeCalls calls a function before each call that a mover makes.
func (c caller) beforeCalls(f func() error) {
	for _, call := range []string{"table.Write", "blob.Copy", "blob.Delete", "blob.Open", "table.GetMany"} {
		c.Calls.Before(call, f)
	}
}

// killAt makes the call of that number among those that a mover makes fail, and all after
// it, as if its process was killed there.
func (c caller) killAt(n int) {
	at := 0
	c.beforeCalls(func() error {
		if at++; at >= n {
			return errors.New("the process was killed")
		}
		return nil
	})
}

// TestAMoveThatIsKilledAtAnyCallLeavesTheFileReadable kills a deletion, then a restoration,
// at each of their calls.
func TestAMoveThatIsKilledAtAnyCallLeavesTheFileReadable(t *testing.T) {
	t.Parallel()
	const content = "the bytes"
	ctx := context.WithoutCancel(t.Context())
	for first := 1; first <= 6; first++ {
		for second := 1; second <= 6; second++ {
			c := newCaller(t)
			c.put("file=a", content)
			service := c.Service.Files()
			c.killAt(first)
			_, _ = service.Delete(ctx, c.user(), 1)
			c.beforeCalls(nil)
			area := c.stored()[0].Area
			if text := c.read(area, 1); text != content {
				t.Fatalf("killed at call %d, the link in the %s area gives %q", first, area, text)
			}
			c.killAt(second)
			if area == blob.Backup {
				_, _ = service.Restore(ctx, c.user(), 1)
			} else {
				_, _ = service.Delete(ctx, c.user(), 1)
			}
			c.beforeCalls(nil)
			f := c.stored()[0]
			if text := c.read(f.Area, 1); text != content {
				t.Fatalf("killed at calls %d and %d, the link in the %s area gives %q", first, second, f.Area, text)
			}
			c.Clock.Advance(2 * time.Hour)
			c.repair()
			c.wantConsistent(1)
			if text := c.read(f.Area, 1); text != content || len(c.stored()[0].From) != 0 {
				t.Fatalf("after a repair the link gives %q, and the record says %+v", text, c.stored()[0].File)
			}
		}
	}
}

// TestASweepFinishesAMoveThatWasKilled waits for the day in the key of the old bytes.
func TestASweepFinishesAMoveThatWasKilled(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a", "the bytes")
	_, err := c.lazy().Delete(t.Context(), c.user(), 1)
	c.must(err)
	c.Calls.Before("blob.Copy", func() error { return errors.New("away") })
	c.Clock.Advance(31 * day)
	if r := c.sweepYoung(); r.Failed == 0 {
		t.Errorf("while copies fail, the sweep reported %+v", r)
	}
	c.Calls.Before("blob.Copy", nil)
	c.Clock.Advance(day)
	if r := c.sweepYoung(); r.Moved != 1 || r.Failed != 0 {
		t.Errorf("the sweep of the next day reported %+v", r)
	}
	c.wantConsistent(1)
}

// TestAMoveLosesNothingWhenItIsOvertakenAtAnyCall moves a file back, and perhaps deletes it
// again or purges it, at each call of a mover.
func TestAMoveLosesNothingWhenItIsOvertakenAtAnyCall(t *testing.T) {
	t.Parallel()
	const content = "the bytes"
	for what, meanwhile := range map[string]struct {
		area   blob.Area // empty if it is gone
		script string
	}{
		"restored":                    {blob.Files, "restore 1"},
		"restored, without its bytes": {blob.Files, "restore-lazily 1"},
		"restored and deleted again":  {blob.Backup, "restore-lazily 1\ndelete 1"},
		"purged":                      {"", "purge 1"},
	} {
		for n := 1; n <= 3; n++ { // the copy, the end of the move, the removal of the old bytes
			t.Run(fmt.Sprintf("%s before call %d", what, n), func(t *testing.T) {
				t.Parallel()
				c := newCaller(t)
				c.put("file=a", content)
				moved, err := c.lazy().Delete(t.Context(), c.user(), 1)
				c.must(err)
				at, calls := 0, []string{"blob.Copy", "table.Write", "blob.Delete"}
				for _, call := range calls {
					c.Calls.Before(call, func() error {
						if at++; at != n {
							return nil
						}
						at = 1000 // what comes meanwhile is not counted
						apitest.Tell(t, meanwhile.script, (&room{caller: c}).do)
						if meanwhile.area != "" && c.read(meanwhile.area, 1) != content {
							t.Errorf("meanwhile the link gives %q", c.read(meanwhile.area, 1))
						}
						c.Service.Links().Flush(t.Context()) // otherwise the download is counted beside the mover's calls
						return nil
					})
				}
				expect.NoErr(t, c.Service.Files().MoveBytes(t.Context(), moved.Owner, moved.ID))
				for _, call := range calls {
					c.Calls.Before(call, nil)
				}
				if meanwhile.area == "" {
					c.wantConsistent(0)
					return
				}
				expect.Equal(t, "what the link gives in the end", c.read(meanwhile.area, 1), content)
				expect.NoErr(t, c.Service.Files().MoveBytes(t.Context(), "alice", 1))
				c.wantConsistent(1)
				expect.Equal(t, "what the link gives after the last move", c.read(meanwhile.area, 1), content)
			})
		}
	}
}
