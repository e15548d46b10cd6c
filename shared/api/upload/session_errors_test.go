package upload_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
)

// remove removes a user as `ferry user remove` does.
func (c caller) remove(name string) {
	c.Helper()
	expect.NoErr(c.TB, c.Users.Disable(c.Context(), name))
	_, err := c.Service.Files().RemoveAll(c.Context(), name)
	expect.NoErr(c.TB, err)
	expect.NoErr(c.TB, c.Users.Remove(c.Context(), name))
}

// ends are the ways in which a user stops being one.
func ends() map[string]func(c caller, name string) {
	return map[string]func(c caller, name string){
		"disabled": func(c caller, name string) { expect.NoErr(c.TB, c.Users.Disable(c.Context(), name)) },
		"removed":  caller.remove,
		"replaced": func(c caller, name string) { c.remove(name); c.Add(name) },
	}
}

// wantNothingLeft sweeps after the store has dropped all sessions, and checks that nothing is left.
func (c caller) wantNothingLeft() {
	c.Helper()
	c.Clock.Advance(blob.PartsLife + 2*time.Hour)
	if r, err := c.Service.Sweep(c.Context()); err != nil || r.Failed != 0 {
		c.Errorf("the sweep: %+v, %v", r, err)
	}
	if left := append(c.Objects(blob.Files), c.Sessions()...); len(left) != 0 {
		c.Errorf("these are left: %v", left)
	}
	c.wantCounts(map[string]int{"reserved#": 0})
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
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.InProcess("parts go to the store, which cannot ask")
			p := c.sign(c.plan(`,"d":"bob"`, 5), 1)
			end(c, "ann")
			c.put(p, "hello").Want(403)
		})
	}
}

func TestExpiredSessionTakesNothingAndGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	c := begin(t)
	eve := caller{c.Add("eve", apitest.Quota(10_000))}
	data := content(9_000)
	s := c.plan(`,"d":"eve"`, len(data))
	c.Clock.Advance(files.SessionLife - time.Minute)
	c = c.as("ann")
	p := c.sign(s, 1)
	c.put(p, data).Want(200)
	c.Clock.Advance(time.Minute + time.Second)
	c.put(p, data).Want(403)
	c.notFound(s.ID, "expired")
	expect.Equal(t, "open sessions", len(c.open()), 0)
	c.wantNothingLeft()
	eve.as("eve").plan("", 10_000)
}

func TestCompletedSessionTakesNoParts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("parts go to the store, which has its own answers")
	s := c.plan("", 5)
	p := c.sign(s, 1)
	c.put(p, "hello").Want(200)
	c.completes(s, "", "hello")
	c.Ask("POST "+s.path("/parts"), `{"numbers":[1]}`).Want(409, "complete")
	c.put(p, "HELLO").Want(409)
	c.completes(s, "", "hello")
}

// TestDestinationRemovedMidwayGetsNothing: nor does another one of the same name.
func TestDestinationRemovedMidwayGetsNothing(t *testing.T) {
	t.Parallel()
	for what, end := range ends() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.Add("dave", apitest.Quota(5000))
			s := c.sent(`,"d":"dave"`, "hello")
			end(c, "dave")
			for range 2 {
				c.complete(s, "").Want(400, "destination user")
			}
			c.wantNothingLeft()
		})
	}
}

// TestRemovedUploaderLosesSessions adds a later user of the same name, who must not get them.
func TestRemovedUploaderLosesSessions(t *testing.T) {
	t.Parallel()
	c := begin(t)
	eve := caller{c.Add("eve", apitest.Quota(5000))}
	own, forBob := eve.sent("", "hello"), eve.sent(`,"d":"bob"`, "hello")
	c.remove("eve")
	eve.Ask("GET "+own.path(""), "").Want(401)
	eve = caller{c.Add("eve")}
	eve.notFound(own.ID)
	eve.notFound(forBob.ID)
	expect.Equal(t, "sessions of the second eve", len(eve.open()), 0)
	c.wantNothingLeft()
}
