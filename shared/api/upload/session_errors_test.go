package upload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"
)

// remove removes a user as `ferry user remove` does.
func (c caller) remove(name string) {
	c.Helper()
	err := c.Users.Disable(c.Context(), name)
	if err == nil {
		_, err = file.Service(c.Data.Ports).RemoveAll(c.Context(), name)
	}
	if err == nil {
		err = c.Users.Remove(c.Context(), name)
	}
	if err != nil {
		c.Fatalf("removing %s: %v", name, err)
	}
}

// wantNothingLeft sweeps after the store has dropped all sessions, and checks that nothing is left.
func (c caller) wantNothingLeft() {
	c.Helper()
	c.Clock.Advance(blob.PartsLife + 2*time.Hour)
	if r, err := c.Service.Sweep(c.Context()); err != nil || r.Failed != 0 {
		c.Errorf("the sweep: %+v, %v", r, err)
	}
	if left := c.Objects(blob.Files); len(left) != 0 {
		c.Errorf("objects are left: %v", left)
	}
	if left := c.Sessions(); len(left) != 0 {
		c.Errorf("sessions are left: %v", left)
	}
	if left := c.Partitions("reserved#"); len(left) != 0 {
		c.Errorf("reservations are left: %v", left)
	}
}

func TestLargeFileHasLargeParts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	if !c.InStack() {
		c.onDisk(nil)
	}
	var s session
	c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","length":%d}`, 1<<40), 201, &s)
	if s.Parts > blob.MaxParts || int64(s.Parts)*s.PartSize < 1<<40 {
		t.Errorf("a TiB has %d parts of %d bytes", s.Parts, s.PartSize)
	}
	if l := (blob.Layout{Length: files.MaxLength, PartSize: files.PartSize(files.MaxLength, 0)}); l.Check() != nil || l.Count() != blob.MaxParts {
		t.Errorf("the largest file has %d parts of %d bytes", l.Count(), l.PartSize)
	}
}

func TestUnknownSessionIsNotFound(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, id := range []string{"x", "1-unknown", "%2e%2e", "a%2Fb", "%00", strings.Repeat("x", 2000), "upload%231"} {
		c.notFound(id)
	}
}

func TestPartsOfADisabledOrRemovedUserAreRefused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(caller) error{
		"disabled": func(c caller) error { return c.Users.Disable(c.Context(), "ann") },
		"removed":  func(c caller) error { c.remove("ann"); return nil },
		"replaced": func(c caller) error { c.remove("ann"); c.AddUser("ann", password); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.InProcess("parts go to the store, which cannot ask")
			s := c.plan(`,"d":"bob"`, 1000)
			p := c.sign(s.ID, `{"numbers":[1]}`)[0]
			must(t, end(c))
			c.wantPut(p, content(t, 1000), 403)
		})
	}
}

func TestExpiredSessionTakesNothingAndGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(10_000))
	data := content(t, 9_000)
	s := c.plan(`,"d":"eve"`, len(data))
	c.Clock.Advance(files.SessionLife - time.Minute)
	c = c.as("ann")
	p := c.sign(s.ID, `{"numbers":[1]}`)[0]
	c.wantPut(p, data, 200)
	c.Clock.Advance(time.Minute + time.Second)
	c.wantPut(p, data, 403)
	c.notFound(s.ID, "expired")
	if got := c.open(); len(got) != 0 {
		t.Errorf("the open sessions are %v", got)
	}
	c.wantNothingLeft()
	c.as("eve").plan("", 10_000)
}

func TestCompletedSessionTakesNoParts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("parts go to the store, which has its own answers")
	data := content(t, 1000)
	s := c.plan("", len(data))
	p := c.sign(s.ID, `{"numbers":[1]}`)[0]
	c.put(p, data)
	c.complete(s.ID, "")
	c.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[1]}`, 409, "complete")
	c.wantPut(p, content(t, 1000), 409)
	c.wantFile(c.complete(s.ID, ""), data)
}

// TestDestinationRemovedMidwayGetsNothing disables the destination user, removes the user,
// or adds another one of the same name.
func TestDestinationRemovedMidwayGetsNothing(t *testing.T) {
	t.Parallel()
	for what, goes := range map[string]func(caller){
		"disabled": func(c caller) {
			must(c.TB, c.Users.Disable(c.Context(), "dave"))
		},
		"removed":  func(c caller) { c.remove("dave") },
		"replaced": func(c caller) { c.remove("dave"); c.AddUser("dave", password) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.AddUser("dave", password, quota(5000))
			data := content(t, 1000)
			s := c.plan(`,"d":"dave"`, len(data))
			c.sendAll(s, data)
			goes(c)
			for range 2 {
				c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "destination user")
			}
			c.wantNothingLeft()
		})
	}
}

// TestRemovedUploaderLosesSessions adds a later user of the same name, who must not get them.
func TestRemovedUploaderLosesSessions(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(5000))
	eve := c.as("eve")
	data := content(t, 1000)
	own, forBob := eve.plan("", len(data)), eve.plan(`,"d":"bob"`, len(data))
	eve.sendAll(own, data)
	eve.sendAll(forBob, data)
	c.remove("eve")
	eve.refused("GET", "/uploads/"+own.ID, "", 401)
	c.AddUser("eve", password)
	eve = c.as("eve")
	for _, s := range []session{own, forBob} {
		eve.notFound(s.ID)
	}
	if got := eve.open(); len(got) != 0 {
		t.Errorf("the second eve has %v", got)
	}
	c.wantNothingLeft()
}
