package files_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/users"
)

// remove disables the caller, purges all files, and removes the user.
func (c caller) remove() {
	c.Helper()
	c.must(c.Users.Disable(c.Context(), c.name))
	c.must(failure(c.Service.Files().RemoveAll(c.Context(), c.name)))
	c.must(c.Users.Remove(c.Context(), c.name))
}

// replaceUser removes the caller and returns a new user of the same name.
func (c caller) replaceUser(change ...func(*users.User)) caller {
	c.Helper()
	c.remove()
	c.AddUser(c.name, password, change...)
	return caller{c.server, c.name, c.Login(c.name, password)}
}

// beginUpload stores the bytes of an upload, but does not commit it.
func (c caller) beginUpload(content string) *files.Upload {
	c.Helper()
	u, err := c.Service.Files().Begin(c.Context(), c.name, c.by(), int64(len(content)), files.Sending{})
	c.must(err)
	c.must(u.Add(c.Context(), files.Part{Name: "slow", Body: strings.NewReader(content), Size: int64(len(content))}))
	return u
}

// TestUploadOutlivingItsUserNeverReachesTheNextUser commits the uploads of two removed
// users after a third one got their name.
func TestUploadOutlivingItsUserNeverReachesTheNextUser(t *testing.T) {
	t.Parallel()
	first := newCaller(t)
	ofFirst := first.beginUpload("of the first")
	second := first.replaceUser()
	ofSecond := second.beginUpload("of the second")
	third := second.replaceUser()
	third.put("file=own", "of the third")

	for of, u := range map[string]*files.Upload{"the first": ofFirst, "the second": ofSecond} {
		page, err := u.Commit(t.Context(), files.PageSize)
		if err != nil || len(page.Files) != 1 || page.Files[0].Name != "slow" {
			t.Errorf("the upload of %s got %+v, %v", of, page, err)
		}
	}
	third.must(third.give(100)) // so that the use is kept
	wantOnlyOwn := func(when string) {
		t.Helper()
		if all := third.stored(); len(all) != 1 || all[0].Name != "own" {
			t.Errorf("%s the third user has %+v, want only its own file", when, all)
		}
		third.wantUsed(when, int64(len("of the third")))
	}
	wantOnlyOwn("at once")
	for _, id := range []string{"1", "2"} {
		third.ask("DELETE /files/" + id).Want(404)
	}
	third.Clock.Advance(31 * day)
	third.sweep(time.Hour)
	wantOnlyOwn("after a sweep")
	third.wantConsistent(1)
}

// TestSweepKeepsFilesOfUserAddedDuringIt replaces a user after a sweep has read
// the earlier one. The sweep takes longer than the grace.
func TestSweepKeepsFilesOfUserAddedDuringIt(t *testing.T) {
	t.Parallel()
	first := newCaller(t, func(u *users.User) { u.BackupDays = 1 })
	first.put("file=a", "of the first")
	first.ask("DELETE /files/1") // the backup area is swept first
	first.Clock.Advance(2 * day)
	var second caller
	lists := 0
	first.Calls.Before("blob.List", func() error {
		if lists++; lists == 2 {
			second = first.replaceUser()
			keepFor(second.Server, 0) // a walk looks at what is kept for ever
			second.put("file=b", "of the second")
			second.Clock.Advance(2 * time.Hour)
		}
		return nil
	})
	first.sweep(time.Hour)
	if lists < 2 {
		t.Fatalf("the sweep listed objects %d times, want 2 or more", lists)
	}
	second.wantConsistent(1)
}

// TestUploadOfRemovedUserTakesNoIDFromTheNext replaces the user between the two
// files of one upload, and before the first file of another.
func TestUploadOfRemovedUserTakesNoIDFromTheNext(t *testing.T) {
	t.Parallel()
	first := newCaller(t)
	u, before := first.beginUpload("one"), first.user()
	second := first.replaceUser()
	err := u.Add(t.Context(), files.Part{Name: "b", Body: strings.NewReader("two"), Size: 3})
	expect.Fault(t, "adding the second file", err, fault.Unauthorized)
	u.Abort(t.Context())
	service, by := second.Service.Files(), files.ByOf(identity.Identity{User: before})
	_, err = service.Begin(t.Context(), "alice", by, 1, files.Sending{})
	expect.Fault(t, "an upload of the removed user", err, fault.Unauthorized)
	second.wantConsistent(0)
	expect.Equal(t, "the last id", second.user().LastFile, 1)
}

// TestRequestOfRemovedUserSeesNothingOfTheNext replaces the user after a request
// has passed authentication.
func TestRequestOfRemovedUserSeesNothingOfTheNext(t *testing.T) {
	t.Parallel()
	first := newCaller(t)
	before := first.user()
	second := first.replaceUser()
	second.put("file=a", "content")
	page, err := second.Service.Files().List(t.Context(), before, blob.Files, 0, 10)
	if err != nil || len(page.Files) != 0 {
		t.Errorf("the list is %+v, %v, want an empty one", page, err)
	}
	_, err = second.Service.Files().Delete(t.Context(), before, second.user().LastFile)
	expect.Fault(t, "the deletion", err, fault.NotFound)
	second.wantConsistent(1)
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
		c.ask(fmt.Sprintf("DELETE /files/%d", 2*id+1))
	}
	c.Clock.Advance(31 * day) // expired files are removed too
	removed, err := c.Service.Files().RemoveAll(t.Context(), "alice")
	if err != nil || removed != stored {
		t.Fatalf("%d files were removed, %v", removed, err)
	}
	expect.Equal(t, "records that are left", len(c.Partitions("files#alice "))+len(c.Partitions("backup#")), 0)
	if user, backup := c.Objects(blob.Files), c.Objects(blob.Backup); len(user) != 1 ||
		len(backup) != 0 ||
		len(c.Partitions("link#")) != 1 {
		t.Errorf("there are %v, %v and %d links, want one object and link", user, backup, len(c.Partitions("link#")))
	}
	c.Clock.Advance(-31 * day)
	expect.Equal(t, "what the other user's link gives", c.Get(other), "2")
	if removed, err := c.Service.Files().RemoveAll(t.Context(), "alice"); err != nil || removed != 0 {
		t.Errorf("the second time %d files were removed, %v", removed, err)
	}
}

// TestFileIsNeverTakenForOneThatItsOwnerStored looks at all that is read of a file, on its way
// to the backup area and back.
func TestFileIsNeverTakenForOneThatItsOwnerStored(t *testing.T) {
	t.Parallel()
	alice := files.By{User: "alice"}
	for what, by := range map[string]files.By{
		"the owner stored it":                  alice,
		"another user stored it":               {User: "bob"},
		"a later user of another name did":     {User: "bob", UserIncarnation: 2},
		"a later user of the owner's name did": {User: "alice", UserIncarnation: 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			s, owner := c.Service.Files(), c.user()
			up, err := s.Begin(t.Context(), "alice", by, 4, files.Sending{})
			c.must(err)
			c.must(up.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("four"), Size: 4}))
			stored, err := up.Commit(t.Context(), 0)
			c.must(err)
			id := stored.Files[0].ID
			look := func(area blob.Area) {
				t.Helper()
				f, err := s.Get(t.Context(), owner, area, id)
				c.must(err)
				page, err := s.List(t.Context(), owner, area, 0, 1)
				c.must(err)
				links := c.Service.Links()
				link, err := links.Find(t.Context(), area, links.Token(f), "")
				c.must(err)
				for at, f := range map[string]files.File{"record": f, "list": page.Files[0].File, "link": link.File} {
					if f.By != by ||
						(f.Uploader() == "") != (by.User == "alice") ||
						(f.By == files.ByOf(identity.Identity{User: owner})) != (by == alice) {
						t.Errorf("in the %s area, the %s says that %+v stored it, want %+v", area, at, f.By, by)
					}
				}
				if _, err := s.Sent(t.Context(), alice, "alice", id); area == blob.Files &&
					(err == nil) != (by == alice) {
					t.Errorf("looked for as sent by the owner: %v", err)
				}
			}
			look(blob.Files)
			c.must(failure(s.Delete(t.Context(), owner, id)))
			look(blob.Backup)
			c.must(failure(s.Restore(t.Context(), owner, id)))
			look(blob.Files)
		})
	}
}
