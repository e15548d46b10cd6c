package files_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/files"
)

// remove does what removing a user does.
func (c caller) remove() {
	c.Helper()
	err := c.Users.Disable(c.Context(), c.name)
	if err == nil {
		_, err = file.Service(c.Data.Ports).RemoveAll(c.Context(), c.name)
	}
	if err == nil {
		err = c.Users.Remove(c.Context(), c.name)
	}
	if err != nil {
		c.Fatalf("removing %s: %v", c.name, err)
	}
}

// again removes the caller and returns the next of the name.
func (c caller) again(change ...func(*auth.User)) caller {
	c.Helper()
	c.remove()
	c.AddUser(c.name, password, change...)
	return caller{c.Server, c.name, c.Login(c.name, password)}
}

// slow begins an upload whose bytes are stored and whose records are not.
func (c caller) slow(content string) *files.Upload {
	c.Helper()
	u, err := file.Service(c.Data.Ports).Begin(c.Context(), c.name, c.user(), int64(len(content)), files.Sending{})
	if err == nil {
		err = u.Add(c.Context(), files.Part{Name: "slow", Body: strings.NewReader(content), Size: int64(len(content))})
	}
	if err != nil {
		c.Fatalf("beginning an upload: %v", err)
	}
	return u
}

// TestAnUploadThatOutlivesItsUserIsNotTheNextOnes has an upload of each of two
// users end in the time of the third of their name.
func TestAnUploadThatOutlivesItsUserIsNotTheNextOnes(t *testing.T) {
	t.Parallel()
	first := begin(t)
	ofFirst := first.slow("of the first")
	second := first.again()
	ofSecond := second.slow("of the second")
	third := second.again(quota(100))
	third.Put(third.bearer, "file=own", "of the third")

	for of, u := range map[string]*files.Upload{"the first": ofFirst, "the second": ofSecond} {
		page, err := u.CommitAndList(t.Context(), files.PageSize)
		if err != nil || len(page.Files) != 1 || page.Files[0].Name != "slow" {
			t.Errorf("the upload of %s is answered with %+v, %v", of, page, err)
		}
	}
	owns := func(when string) {
		t.Helper()
		if all := third.stored(); len(all) != 1 || all[0].Name != "own" {
			t.Errorf("%s the third has %+v", when, all)
		}
		third.uses(when, int64(len("of the third")))
	}
	owns("at once")
	for _, id := range []string{"1", "2"} {
		if status, _ := third.call("DELETE", "/files/"+id); status != 404 {
			t.Errorf("deleting the file %s is answered with %d", id, status)
		}
	}
	third.Clock.Advance(2 * time.Hour)
	third.sweep(time.Hour)
	owns("after a sweep")
	third.sound(1)
}

// TestAFileThatOutlivesItsUserIsNotMoved has one whose time is up before it is swept.
func TestAFileThatOutlivesItsUserIsNotMoved(t *testing.T) {
	t.Parallel()
	first := begin(t)
	u := first.slow("content")
	second := first.again()
	if _, err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.Clock.Advance(31 * 24 * time.Hour)
	second.sweep(time.Hour)
	second.sound(0)
	if left := second.Partitions("backup#"); len(left) != 0 {
		t.Errorf("the backup area has %v", left)
	}
}

// TestASweepKeepsFilesOfAUserWhoCameDuringIt has a sweep that lasts longer than
// the grace know its user by the earlier one of the name.
func TestASweepKeepsFilesOfAUserWhoCameDuringIt(t *testing.T) {
	t.Parallel()
	first := begin(t)
	first.Put(first.bearer, "file=a", "of the first")
	first.call("DELETE", "/files/1") // the backup area is swept first
	var second caller
	lists := 0
	first.Calls.Before("blob.List", func() error {
		if lists++; lists == 2 {
			second = first.again()
			second.Put(second.bearer, "file=b", "of the second")
			second.Clock.Advance(2 * time.Hour)
		}
		return nil
	})
	first.sweep(time.Hour)
	if lists != 2 {
		t.Fatalf("the sweep made %d lists", lists)
	}
	second.sound(1)
}

// TestAnUploadTakesNoIDOfTheNextUser has its user replaced between two of its
// files, and before its first.
func TestAnUploadTakesNoIDOfTheNextUser(t *testing.T) {
	t.Parallel()
	first := begin(t)
	u, before := first.slow("one"), first.user()
	second := first.again()
	err := u.Add(t.Context(), files.Part{Name: "b", Body: strings.NewReader("two"), Size: 3})
	if !envelope.IsFault(err, envelope.Unauthorized) {
		t.Errorf("the next file ends with %v", err)
	}
	u.Abort(t.Context())
	if _, err := file.Service(second.Data.Ports).Begin(t.Context(), "alice", before, 1, files.Sending{}); !envelope.IsFault(err, envelope.Unauthorized) {
		t.Errorf("an upload with what was true before ends with %v", err)
	}
	second.sound(0)
	if id := second.user().LastFile; id != 1 {
		t.Errorf("the last id is %d, want the first user's", id)
	}
}

// TestAListThatWasAllowedToOneUserShowsNothingOfTheNext holds what a request
// may see whose user is replaced after it was let in.
func TestAListThatWasAllowedToOneUserShowsNothingOfTheNext(t *testing.T) {
	t.Parallel()
	first := begin(t)
	before := first.user()
	second := first.again()
	second.Put(second.bearer, "file=a", "content")
	page, err := file.Service(second.Data.Ports).List(t.Context(), before, blob.Files, 0, 10)
	if err != nil || len(page.Files) != 0 {
		t.Errorf("the list is %+v, %v", page, err)
	}
	if _, err := file.Service(second.Data.Ports).Delete(t.Context(), before, second.user().LastFile); !envelope.IsFault(err, envelope.NotFound) {
		t.Errorf("the deletion ends with %v", err)
	}
	second.sound(1)
}

// TestNoRoomIsReservedOfAUserWhoWentMeanwhile lets the owner go, or be
// replaced, between an upload's id and its reservation.
func TestNoRoomIsReservedOfAUserWhoWentMeanwhile(t *testing.T) {
	t.Parallel()
	for what, meanwhile := range map[string]func(caller){
		"gone":     caller.remove,
		"replaced": func(c caller) { c.again(quota(100)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t, quota(100))
			c.Calls.Before("table.Write", func() error {
				c.Calls.Before("table.Write", nil)
				meanwhile(c)
				return nil
			})
			if w := c.upload("file=a", endless(60), 60); w.Code < 400 {
				t.Errorf("the upload is answered with %d", w.Code)
			}
			if what == "gone" {
				c.AddUser("alice", password, quota(100)) // nothing stands in the way of the name
			}
			c.uses(what, 0)
			c.sound(0)
		})
	}
}

// TestABodyThatOutlivesItsUserGivesTheNextNothing does it all by requests: a
// user is replaced while the user's body is read.
func TestABodyThatOutlivesItsUserGivesTheNextNothing(t *testing.T) {
	t.Parallel()
	first := begin(t)
	var second caller
	body := io.MultiReader(strings.NewReader("con"), reading(func() { second = first.again() }), strings.NewReader("tent"))
	first.upload("file=a", body, 7)
	list := second.Decode(second.Request("GET", "/download/list", nil, "Authorization", "Bearer "+second.bearer), 200)
	if len(list.Files) != 0 {
		t.Errorf("the next user's list has %+v", list.Files)
	}
	second.Clock.Advance(2 * time.Hour)
	if _, err := second.Service.Sweep(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	second.sound(0)
}

// reading does something when it is read, and has no bytes.
type reading func()

func (r reading) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}
