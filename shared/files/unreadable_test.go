package files_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
	"ferry/shared/users"
)

// eachDamage runs a test for each way in which an item cannot be read: it is no JSON, or
// attr has another type.
func eachDamage(t *testing.T, attr string, test func(c caller, damage func(table.Key)), change ...func(*users.User)) {
	t.Parallel()
	for what, damage := range map[string]func(caller, table.Key){
		"no JSON":      func(c caller, key table.Key) { c.Spoil(key) },
		"another type": func(c caller, key table.Key) { c.update(key, attr, []string{"x"}) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, change...)
			test(c, func(key table.Key) { damage(c, key) })
		})
	}
}

// keys returns the keys of the items of some partitions, in order.
func (s server) keys(prefix string) (all []table.Key) {
	for _, key := range slices.Sorted(maps.Keys(s.Partitions(prefix))) {
		pk, sk, _ := strings.Cut(key, " ")
		all = append(all, table.Key{PK: pk, SK: sk})
	}
	return all
}

// wantLogged checks that the log names an item.
func (c caller) wantLogged(unreadable table.Key) {
	c.Helper()
	if log := c.Log.String(); !strings.Contains(
		log,
		`level=ERROR msg="an item of the table cannot be read" key="`+unreadable.String(),
	) {
		c.Errorf("the log does not name %s: %s", unreadable, log)
	}
}

// wantListed checks the ids that an answer lists, and that the log names an item.
func (c caller) wantListed(a apitest.Answer, unreadable table.Key, want ...int64) {
	c.Helper()
	var ids []int64
	for _, f := range a.Want(200).Files {
		ids = append(ids, f.ID)
	}
	expect.Equal(c.TB, "the listed ids", ids, want)
	c.wantLogged(unreadable)
}

func TestAnUnreadableRecordIsLeftOutAndStopsNothingElse(t *testing.T) {
	eachDamage(t, "id", func(c caller, damage func(table.Key)) {
		c.caller().Fill(4)
		c.ask("DELETE /files/1")
		middle, newest, backup := files.Key(
			blob.Files,
			"alice",
			3,
		), files.Key(blob.Files, "alice", 4), files.Key(blob.Backup, "alice", 1)
		damage(middle)
		c.wantListed(c.caller().Ask("GET /download/list", ""), middle, 4, 2)
		damage(newest)
		c.wantListed(c.caller().Ask("GET /download/list", ""), newest, 2)
		damage(backup)
		c.wantListed(c.caller().Ask("GET /download/list/backup", ""), backup)
		for range 2 { // the second is a repeat
			c.wantListed(c.caller().Ask("POST /upload?file=b", "content", files.KeyHeader, "k"), newest, 5, 2)
		}
		c.write(table.Put(files.Key(blob.Files, "alice", 6), c.Newest(c.name))) // another file's
		for after, more, want := int64(0), true, []int64{5, 2}; more; more = after > 0 {
			page, err := c.Service.Files().List(c.Context(), c.user(), blob.Files, after, 1)
			c.must(err)
			if after = page.Next; len(page.Files) > 0 && page.Files[0].ID == want[0] {
				want = want[1:]
			} else if len(page.Files) > 0 || after == 0 {
				c.Errorf("a page has %+v, and the next is after %d", page.Files, after)
			}
		}
		c.caller().Ask("GET /files/4", "").Want(500)
		c.wantListed(c.caller().Ask("DELETE /files/2", ""), newest, 2)
	})
}

func TestAFileWithAnUnreadableLinkIsMovedAndGetsItAnew(t *testing.T) {
	eachDamage(t, "file", func(c caller, damage func(table.Key)) {
		sent := c.caller().SendToTwo("")
		own := table.Key{PK: "link#" + keys.HashToken(c.Service.Links().Token(sent)), SK: "link"}
		damage(own)
		for _, notice := range c.keys("outbox#") {
			c.Spoil(notice)
		}
		c.WantStatuses("as it is damaged", c.LinksOf(sent)[:1], 500)
		c.caller().Ask("GET /files/1", "").Want(200)
		c.wantListed(c.caller().Ask("DELETE /files/1", ""), own, 1)
		c.ask("POST /files/1/restore")
		c.WantStatuses("of the restored file", c.LinksOf(sent), 200)
		damage(own)
		c.ask("DELETE /files/1")
		c.ask("DELETE /files/1?area=backup")
		c.wantConsistent(0)
	})
}

func TestAnUnreadableSessionOrReservationStopsNoOther(t *testing.T) {
	eachDamage(t, "expires", func(c caller, damage func(table.Key)) {
		s := c.Service.Files()
		begin := func(n int) {
			for range n {
				c.must(failure(s.BeginSession(c.Context(), c.by(), files.Plan{
					Owner:  "alice",
					Name:   "a",
					Length: 5,
				}, nil)))
				c.Clock.Advance(time.Second)
			}
		}
		begin(3)
		held := c.keys("reserved#")[1]
		damage(held)
		for _, newer := range c.keys("uploads#")[1:] {
			damage(newer)
		}
		listed := 0
		for after, more := "", true; more; more = after != "" {
			page, next, err := s.Sessions(c.Context(), c.by(), after, 1)
			c.must(err)
			listed, after = listed+len(page), next
		}
		c.update(table.Key{PK: "user#alice", SK: "uploads-0"}, "open", int64(100)) // so that they are counted
		begin(1)
		c.Clock.Advance(2 * time.Hour)
		c.bearer = c.Login("alice", password)
		w := c.upload("file=a", strings.NewReader("content"), -1)
		if used := c.user().Used; listed != 1 || w.Code != 200 || used != 5+7 {
			c.Errorf("%d sessions are listed, an upload has status %d, %d bytes are in use, of which 5 are lost",
				listed, w.Code, used)
		}
		c.wantLogged(held)
		if _, err := s.Used(c.Context(), c.user()); err == nil || !strings.Contains(err.Error(), held.String()) {
			c.Errorf("adding up gives %v", err)
		}
		c.must(failure(s.RemoveAll(c.Context(), "alice")))
		expect.Equal(c.TB, "reservations for a later user of the name", len(c.keys("reserved#")), 0)
	}, quota(100))
}

func TestADownloadIsCountedWhoseReceiptIsUnreadable(t *testing.T) {
	eachDamage(t, "to", func(c caller, damage func(table.Key)) {
		link := c.put("file=a&notify=1", "content").LinkURL
		damage(c.keys("receipt#")[0])
		c.Send("GET "+link, "")
		counted := func() bool { return strings.Contains(fmt.Sprint(c.Partitions("link#")), `"told":true`) }
		expect.Equal(c.TB, "the download is counted", expect.Eventually(counted), true)
	})
}

func TestAnUnreadableUserIsStoppedAlone(t *testing.T) {
	eachDamage(t, "lastFile", func(c caller, damage func(table.Key)) {
		c.AddUser("bob", password)
		bob := caller{c.server, "bob", c.Login("bob", password)}
		session, err := c.Service.Files().BeginSession(c.Context(), c.by(), files.Plan{
			Owner:  "bob",
			Name:   "a",
			Length: 0,
		}, nil)
		c.must(err)
		damage(users.Key("bob"))
		for _, a := range []apitest.Answer{
			c.caller().Ask(
				"POST /upload?file=a&d=bob",
				"content",
			), c.caller().Ask("POST /uploads", `{"name":"a","length":5,"d":"bob"}`),
			c.caller().Ask("POST /uploads/"+session.ID+"/complete", ""),
		} {
			a.Want(409, "account of bob cannot be read")
		}
		bob.caller().Ask("GET /download/list", "").Want(500)
		c.Send("POST /auth/login", "", "Authorization", "Basic Ym9iOng=").Want(500)
		c.wantListed(c.caller().Ask("POST /upload?file=b", "content"), users.Key("bob"), 1)
	})
}
