package upload_test

import (
	"strings"
	"testing"

	"ferry/shared/users"
)

func TestAFileForOneselfIsAnsweredWithOnesOwnList(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Put(c.bearer, "file=a.txt", "1")
	for _, d := range []string{"ann", "Ann", ""} {
		if e := c.Put(c.bearer, "d="+d+"&file=b.txt", "2"); len(e.Files) < 2 || e.Files[0].Name != "b.txt" {
			t.Errorf("d=%q is answered with %+v", d, e.Files)
		}
	}
}

func TestADestinationThatIsNoUserIsRefusedBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", c.password, func(u *users.User) { u.State = users.Disabled })
	for _, d := range []string{"nobody", "gone", "a%00b", "..", "bob%23", "%20", strings.Repeat("x", 1000), "bob%20ann", "user%23bob"} {
		resp := c.post("file=x&d="+d, "", strings.NewReader("content"))
		c.wantStatus("d="+d, resp, 400)
		if says := resp.Header.Get("Ferry-Error"); says != "the destination user does not exist" {
			t.Errorf("d=%s: it says %q", d, says)
		}
		c.wantNothing("d=" + d)
		c.wantNoneCreated("d=" + d)
	}
}

func TestAUserInFirstAccessCanBeSentFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("new", c.password, func(u *users.User) { u.State = users.FirstAccess })
	if e := c.Put(c.bearer, "file=x&d=new", "1"); len(e.Files) != 1 || c.get(e.Files[0].LinkURL) != "1" {
		t.Errorf("the answer is %+v", e)
	}
}
