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

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/fault"
	"ferry/shared/files"
)

const day = 24 * time.Hour

func TestLinkWorksOnlyWhileFileIsInItsArea(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	first := c.put("file=a.txt", "the content")
	_, gone := c.call("DELETE", "/files/1")
	backup := gone.Files[0]
	if backup.ID != 1 || backup.Name != "a.txt" || backup.Length != 11 || backup.Modified != first.Modified || !strings.Contains(backup.LinkURL, "/download/file/backup?") {
		t.Fatalf("the deletion returned %+v", backup)
	}
	token := func(link string) string { return link[strings.LastIndexByte(link, '=')+1:] }
	if token(first.LinkURL) == token(backup.LinkURL) {
		t.Error("the links of both areas have the same token")
	}
	for what, k := range map[string]struct {
		link string
		want int
	}{
		"the old link":                      {first.LinkURL, 401},
		"the new link":                      {backup.LinkURL, 200},
		"the old token in the backup area":  {c.Base + "/download/file/backup?z=" + token(first.LinkURL), 401},
		"the backup token in the user area": {c.Base + "/download/file?k=" + token(backup.LinkURL), 401},
	} {
		if status, _ := c.get(k.link); status != k.want {
			t.Errorf("after the deletion %s gave status %d, want %d", what, status, k.want)
		}
	}
	_, back := c.call("POST", "/files/1/restore")
	if back.Files[0] != first {
		t.Errorf("after the restoration the file is %+v, want %+v", back.Files[0], first)
	}
	if status, text := c.get(first.LinkURL); status != 200 || text != "the content" {
		t.Errorf("after the restoration the first link gave %d %q", status, text)
	}
	if status, _ := c.get(backup.LinkURL); status != 401 {
		t.Errorf("after the restoration the backup link gave status %d, want 401", status)
	}
	c.wantConsistent(1)
}

func TestLinksAreTheSameInEveryList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := apitest.Open(t, dir, fixedURL)
	s.Base = s.Root + api.Prefix
	alice := s.Add("alice")
	first := alice.Ask("POST /upload?file=a", "1").Want(200).Files
	want := fmt.Sprint(first, alice.Ask("POST /upload?file=b", "2").Want(200).Files)
	list := func() string {
		all := s.Send("GET /download/list", "", "Authorization", "Bearer "+alice.Bearer).Want(200).Files
		return fmt.Sprint(all[1:], all)
	}
	for range 3 {
		if got := list(); got != want {
			t.Fatalf("the list is %s, want %s", got, want)
		}
	}
	s.Close()
	s = apitest.Open(t, dir, fixedURL)
	s.Base = s.Root + api.Prefix
	if got := list(); got != want {
		t.Fatalf("after a restart the list is %s, want %s", got, want)
	}
}

func TestRetentionFollowsTheOwnersTerms(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		change             func(*auth.User)
		keep, keepInBackup time.Duration
	}{
		"the service sets both terms":          {func(*auth.User) {}, 30 * day, 90 * day},
		"the user has both terms":              {func(u *auth.User) { u.KeepDays, u.BackupDays = 2, 3 }, 2 * day, 3 * day},
		"the user has one term, not the other": {func(u *auth.User) { u.BackupDays = 365 }, 30 * day, 365 * day},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, k.change)
			link := c.put("file=a", "1").LinkURL
			c.wantLifetime(blob.Files, link, k.keep)
			c.bearer = c.Login("alice", password)
			backup := c.put("file=b", "2")
			_, gone := c.call("DELETE", fmt.Sprintf("/files/%d", backup.ID))
			c.wantLifetime(blob.Backup, gone.Files[0].LinkURL, k.keepInBackup)
		})
	}
}

// wantLifetime checks that the only file of an area can be used for d, and after
// that is not listed, served or moved, even before a sweep. Three hours on either
// side allow for time zones that change their clocks.
func (c caller) wantLifetime(area blob.Area, link string, d time.Duration) {
	c.Helper()
	path, move := "/download/list", "DELETE"
	if area == blob.Backup {
		path, move = "/download/list/backup", "POST"
	}
	c.Clock.Advance(d - 3*time.Hour)
	c.bearer = c.Login(c.name, password)
	if status, _ := c.get(link); status != 200 {
		c.Errorf("before the expiry the link gave status %d", status)
	}
	_, list := c.call("GET", path)
	if len(list.Files) != 1 {
		c.Fatalf("before the expiry the list has %+v, want one file", list.Files)
	}
	c.Clock.Advance(6 * time.Hour)
	c.bearer = c.Login(c.name, password)
	if status, _ := c.get(link); status != 401 {
		c.Errorf("after the expiry the link gave status %d, want 401", status)
	}
	where := fmt.Sprintf("/files/%d", list.Files[0].ID)
	if area == blob.Backup {
		where += "/restore"
	}
	if status, _ := c.call(move, where); status != 404 {
		c.Errorf("after the expiry %s %s gave status %d, want 404", move, where, status)
	}
	if _, list := c.call("GET", path); len(list.Files) != 0 {
		c.Errorf("after the expiry the list has %+v, want nothing", list.Files)
	}
}

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
					c.countMove(&moved, "DELETE", "/files/1")
				case 1:
					c.countMove(&moved, "POST", "/files/1/restore")
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
	if n := len(c.Objects(blob.Files)) + len(c.Objects(blob.Backup)); n < 2 {
		t.Errorf("there are %d objects, so nothing was left to clear up", n)
	}
	c.repair()
	c.wantConsistent(1)
	f := c.stored()[0]
	if text := c.read(f.Area, 1); text != content {
		t.Errorf("the link gave %q", text)
	}
}

// countMove moves a file and counts it. The file may also be in the other area. While eight
// moves wait for its bytes it is asked to try again, as the answer says.
func (c caller) countMove(moved *atomic.Int64, method, path string) {
	status := 503
	for try := 0; status == 503 && try < 100; try++ {
		status, _ = c.call(method, path)
	}
	switch status {
	case 200:
		moved.Add(1)
	case 404: // it is in the other area
	default:
		c.Errorf("%s %s gave status %d", method, path, status)
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
	if status, _ := c.get(link); status != 500 {
		t.Errorf("the link gave status %d, want 500", status)
	}
	status, e := c.call("DELETE", "/files/1")
	if status != 200 || len(e.Files) != 1 || c.user().Used != 1 {
		t.Fatalf("the deletion gave status %d, %+v; %d bytes are in use", status, e.Files, c.user().Used)
	}
	if log := c.Log.String(); !strings.Contains(log, `level=ERROR msg="a file was moved without its bytes`) {
		t.Errorf("the log says %s", log)
	}
	for link, want := range map[string]int{link: 401, e.Files[0].LinkURL: 500} {
		if status, _ := c.get(link); status != want {
			t.Errorf("%s gave status %d, want %d", link, status, want)
		}
	}
	if status, _ := c.call("DELETE", "/files/1?area=backup"); status != 200 {
		t.Errorf("the purge gave status %d", status)
	}
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
	if u := c.user(); u.Used != 8 {
		t.Errorf("before the end of both terms %d bytes are in use, want 8", u.Used)
	}
	c.Clock.Advance(91 * day)
	c.sweep(200 * day)
	if u := c.user(); u.Used != 4 || len(c.Partitions("backup#")) != 1 {
		t.Errorf("in the end %d bytes are in use, want the other file's 4, which is in the backup area", u.Used)
	}
}

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

// lazy returns a service whose movers do nothing.
func (c caller) lazy() *files.Service {
	s := file.Service(c.Data.Ports)
	s.Mover = func(context.Context, string, int64) error { return nil }
	return s
}

// busy returns a service that has no mover free.
func (c caller) busy() *files.Service {
	s := file.Service(c.Data.Ports)
	s.Mover = func(context.Context, string, int64) error { return errors.New("all are busy") }
	return s
}

// TestAMoverIsToldOfEachMove has the mover do its work after the answer, twice.
func TestAMoverIsToldOfEachMove(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a", "12")
	var told []string
	service := file.Service(c.Data.Ports)
	service.Mover = func(_ context.Context, owner string, id int64) error {
		told = append(told, fmt.Sprint(owner, " ", id))
		return nil
	}
	c.Calls.Reset()
	if _, err := service.Delete(t.Context(), c.user(), 1); err != nil || fmt.Sprint(told) != "[alice 1]" {
		t.Fatalf("told was %v, %v", told, err)
	}
	if calls := c.Calls.Reset(); calls["blob.Copy"] != 0 || calls["table.Write"] != 1 || c.read(blob.Backup, 1) != "12" {
		t.Errorf("the calls were %v, and the link gives %q", calls, c.read(blob.Backup, 1))
	}
	for range 2 {
		if err := service.MoveBytes(t.Context(), "alice", 1); err != nil {
			t.Error(err)
		}
		c.wantConsistent(1)
	}
	if err := service.MoveBytes(t.Context(), "alice", 2); err != nil {
		t.Errorf("a file that is gone gave %v", err)
	}
}

// TestWithoutAFreeMoverTheNextSweepMovesTheBytes deletes a file that is due on another day.
func TestWithoutAFreeMoverTheNextSweepMovesTheBytes(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.put("file=a", "12")
	c.Calls.Reset()
	c.must(failure(c.busy().Delete(t.Context(), c.user(), 1)))
	if calls := c.Calls.Reset(); calls["blob.Copy"] != 0 || c.read(blob.Backup, 1) != "12" {
		t.Errorf("the calls were %v, and the link gives %q", calls, c.read(blob.Backup, 1))
	}
	if r := c.sweepYoung(); r.Moved != 1 || len(c.Partitions("due ")) != 0 {
		t.Errorf("the sweep reported %+v, and left %v", r, c.Partitions("due "))
	}
	c.wantConsistent(1)
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
	if text := c.read(blob.Files, 1); text != "12" {
		t.Errorf("the link gives %q", text)
	}
	c.Clock.Advance(2 * time.Hour)
	c.repair()
	c.wantConsistent(1)
}

func TestRemovingUserRemovesAllFilesAndNoOthers(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.AddUser("alice2", password)
	other := c.As("alice2").Upload("file=hers", "2").LinkURL
	const stored = files.PageSize + 5
	for range stored {
		c.put("file=a", "1")
	}
	for id := range 3 {
		c.call("DELETE", fmt.Sprintf("/files/%d", 2*id+1))
	}
	c.Clock.Advance(31 * day) // expired files are removed too
	removed, err := file.Service(c.Data.Ports).RemoveAll(t.Context(), "alice")
	if err != nil || removed != stored {
		t.Fatalf("%d files were removed, %v", removed, err)
	}
	if left := len(c.Partitions("files#alice ")) + len(c.Partitions("backup#")); left != 0 {
		t.Errorf("%d records are left", left)
	}
	if user, backup := c.Objects(blob.Files), c.Objects(blob.Backup); len(user) != 1 || len(backup) != 0 || len(c.Partitions("link#")) != 1 {
		t.Errorf("there are %v, %v and %d links, want one object and link", user, backup, len(c.Partitions("link#")))
	}
	c.Clock.Advance(-31 * day)
	if _, text := c.get(other); text != "2" {
		t.Errorf("the other user's link gave %q", text)
	}
	if removed, err := file.Service(c.Data.Ports).RemoveAll(t.Context(), "alice"); err != nil || removed != 0 {
		t.Errorf("the second time %d files were removed, %v", removed, err)
	}
}
