package files_test

import (
	"fmt"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
)

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
