package upload_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
)

func TestFileGoesToAnotherUsersArea(t *testing.T) {
	t.Parallel()
	c := begin(t)
	bob := c.as("bob")
	bob.Put(bob.bearer, "file=private.txt", "bob's own")
	c.Put(c.bearer, "file=mine.txt", "ann's own")
	for _, d := range []string{"bob", "BOB"} {
		e := c.Decode(c.form("d="+d, aFile("file", "one", "1"), aFile("file", "two", "22")), 200)
		if e.User != "ann" || len(e.Files) != 2 || e.Files[0].Name == e.Files[1].Name {
			t.Fatalf("the answer is %+v, want only the two files of this upload", e)
		}
		for _, f := range e.Files {
			if got := c.get(f.LinkURL); int64(len(got)) != f.Length {
				t.Errorf("the link of %s gives %q", f.Name, got)
			}
		}
	}
	if got := strings.Join(bob.names(), " "); got != "private.txt one two one two" {
		t.Errorf("bob has %q", got)
	}
	if got := strings.Join(c.names(), " "); got != "mine.txt" {
		t.Errorf("ann has %q", got)
	}
}

func TestUploadToOneselfListsOwnFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Put(c.bearer, "file=a.txt", "1")
	for _, d := range []string{"ann", "Ann", ""} {
		if e := c.Put(c.bearer, "d="+d+"&file=b.txt", "2"); len(e.Files) < 2 || e.Files[0].Name != "b.txt" {
			t.Errorf("the answer to d=%q is %+v", d, e.Files)
		}
	}
}

func TestUnknownDestinationStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", c.password, func(u *auth.User) { u.State = auth.Disabled })
	for _, d := range []string{"nobody", "gone", "a%00b", "..", "bob%23", "%20", strings.Repeat("x", 1000), "bob%20ann", "user%23bob"} {
		resp := c.post("file=x&d="+d, "", strings.NewReader("content"))
		c.wantStatus("d="+d, resp, 400)
		if says := resp.Header.Get("Ferry-Error"); says != "the parameter d is not a user name" {
			t.Errorf("d=%s: Ferry-Error is %q", d, says)
		}
		c.wantNothing("d=" + d)
		c.wantNoneCreated("d=" + d)
	}
}

func TestUserInFirstAccessCanReceiveFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("new", c.password, func(u *auth.User) { u.State = auth.FirstAccess })
	if e := c.Put(c.bearer, "file=x&d=new", "1"); len(e.Files) != 1 || c.get(e.Files[0].LinkURL) != "1" {
		t.Errorf("the answer is %+v", e)
	}
}
