package upload_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

func TestFileGoesToAnotherUsersArea(t *testing.T) {
	t.Parallel()
	c := begin(t)
	bob := c.as("bob")
	bob.Upload("file=private.txt", "bob's own")
	c.Upload("file=mine.txt", "ann's own")
	for _, d := range []string{"bob", "BOB"} {
		e := c.form("d="+d, someFiles("one", "two")).Want(200)
		if e.User != "ann" || len(e.Files) != 2 || e.Files[0].Name == e.Files[1].Name {
			t.Fatalf("the answer is %s, want only the two files of this upload", e.Text)
		}
		for _, f := range e.Files {
			apitest.Equal(t, f.Name, c.Get(f.LinkURL), f.Name)
		}
	}
	apitest.Equal(t, "bob's files", strings.Join(bob.names(), " "), "private.txt one two one two")
	apitest.Equal(t, "ann's files", strings.Join(c.names(), " "), "mine.txt")
}

func TestUploadToOneselfListsOwnFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Upload("file=a.txt", "1")
	for _, d := range []string{"ann", "Ann", ""} {
		if e := c.post("d="+d+"&file=b.txt", "2").Want(200); len(e.Files) < 2 || e.Files[0].Name != "b.txt" {
			t.Errorf("the answer to d=%q is %s", d, e.Text)
		}
	}
}

func TestUnknownDestinationStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", apitest.Password, func(u *auth.User) { u.State = auth.Disabled })
	for _, d := range []string{"nobody", "gone", "a%00b", "..", "bob%23", "%20", strings.Repeat("x", 1000), "bob%20ann", "user%23bob"} {
		c.post("file=x&d="+d, "content").Want(400, "the parameter d is not a user name")
		c.wantNothing("d=" + d)
		c.wantNoneCreated("d=" + d)
	}
}

func TestUserInFirstAccessCanReceiveFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("new", apitest.Password, func(u *auth.User) { u.State = auth.FirstAccess })
	apitest.Equal(t, "the file", c.Get(c.Upload("file=x&d=new", "1").LinkURL), "1")
}
