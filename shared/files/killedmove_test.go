package files_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
)

// read returns what the file's own link in an area gives.
func (c caller) read(area blob.Area, id int64) string {
	c.Helper()
	path := map[blob.Area]string{blob.Files: "/download/file?k=", blob.Backup: "/download/file/backup?z="}[area]
	_, text := c.get(c.Base + path + c.Data.Ports.Key.File(area, c.name, id))
	return text
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
			service := file.Service(c.Data.Ports)
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
		area blob.Area // empty if it is gone
		do   func(ctx context.Context, c caller) error
	}{
		"restored": {blob.Files, func(ctx context.Context, c caller) error {
			_, err := file.Service(c.Data.Ports).Restore(ctx, c.user(), 1)
			return err
		}},
		"restored, without its bytes": {blob.Files, func(ctx context.Context, c caller) error {
			_, err := c.lazy().Restore(ctx, c.user(), 1)
			return err
		}},
		"restored and deleted again": {blob.Backup, func(ctx context.Context, c caller) error {
			_, err := c.lazy().Restore(ctx, c.user(), 1)
			if err == nil {
				_, err = file.Service(c.Data.Ports).Delete(ctx, c.user(), 1)
			}
			return err
		}},
		"purged": {"", func(ctx context.Context, c caller) error {
			return file.Service(c.Data.Ports).Purge(ctx, c.user(), 1)
		}},
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
						if err := meanwhile.do(t.Context(), c); err != nil {
							t.Errorf("meanwhile: %v", err)
						}
						if meanwhile.area != "" && c.read(meanwhile.area, 1) != content {
							t.Errorf("meanwhile the link gives %q", c.read(meanwhile.area, 1))
						}
						return nil
					})
				}
				if err := file.Service(c.Data.Ports).MoveBytes(t.Context(), moved.Owner, moved.ID); err != nil {
					t.Errorf("the overtaken mover returned %v", err)
				}
				for _, call := range calls {
					c.Calls.Before(call, nil)
				}
				if meanwhile.area == "" {
					c.wantConsistent(0)
					return
				}
				if text := c.read(meanwhile.area, 1); text != content {
					t.Errorf("in the end the link gives %q", text)
				}
				if err := file.Service(c.Data.Ports).MoveBytes(t.Context(), "alice", 1); err != nil {
					t.Error(err)
				}
				c.wantConsistent(1)
				if text := c.read(meanwhile.area, 1); text != content {
					t.Errorf("after the last move the link gives %q", text)
				}
			})
		}
	}
}
