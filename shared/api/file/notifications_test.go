package file_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
)

// recordOf returns what a caller sees of a file.
func recordOf(c apitest.Caller, path string) file.Record {
	c.Helper()
	return apitest.Read[file.Record](c.Ask("GET "+path, "").Want(200))
}

// send uploads, and returns the new file's record.
func send(c apitest.Caller, query, owner string) files.File {
	c.Helper()
	c.Upload("file=x&"+query, "content")
	return c.Newest(owner)
}

// fetch asks for a file by a recipient's link.
func fetch(c apitest.Caller, f files.File, recipient int, agent string, status int) {
	c.Helper()
	token := c.Data.Ports.Key.Recipient(f.Area, f.Owner, f.ID, f.Recipients[recipient])
	c.Send("GET /download/file?k="+token, "", "User-Agent", agent).Want(status)
}

// TestUploaderSeesTheStateOfEachNotice leaves all but a failure to the journey.
func TestUploaderSeesTheStateOfEachNotice(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	f := send(c, "c=%2B393401234567&m=carla@example.com", "ann")
	c.Deliver()
	bounce := notify.Feedback{ID: f.Recipients[1], Kind: notify.Bounced, Detail: "no such mailbox"}
	expect.NoErr(t, notify.Record(t.Context(), c.Data.Ports.Table, c.Clock.Now(), bounce))
	got := recordOf(c, "/files/1").Notifications
	if got[0].State != "sent" ||
		got[1].State != "failed" ||
		!strings.Contains(got[1].LastError, "no such mailbox") ||
		got[1].Failed.IsZero() {
		t.Errorf("after a bounce, the notices are %+v", got)
	}
}

func TestDownloadsAreCountedPerLink(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	f := send(c, "c=%2B393401234567&m=carla@example.com", "ann")
	const person, robot = "curl/8", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"
	fetch(c, f, 1, person, 200)
	fetch(c, f, 1, person, 200)
	fetch(c, f, 1, robot, 303)
	fetch(c, f, 0, robot, 303)
	c.Send("GET /download/file?k="+c.Service.Links().Token(f), "").Want(200)
	const want = "1, 0 with 1 previews, 2 with 1 previews"
	counts := func() string {
		got := recordOf(c, "/files/1")
		other, by := got.Notifications[0].Downloads, got.Notifications[1].Downloads
		return fmt.Sprintf("%d, %d with %d previews, %d with %d previews",
			got.Downloads.Count, other.Count, other.Previews, by.Count, by.Previews)
	}
	expect.Eventually(func() bool { return counts() == want })
	expect.Equal(t, "the downloads by each link", counts(), want)
}

// wantUsed waits until a recipient's download is counted.
func wantUsed(c apitest.Caller, path string) {
	c.Helper()
	if !expect.Eventually(func() bool { return recordOf(c, path).Notifications[0].Downloads.Count == 1 }) {
		c.Errorf("%s: no download is counted", path)
	}
}

func TestDownloadCountsSurviveDeleteAndRestore(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	fetch(c, send(c, "m=carla@example.com", "ann"), 0, "curl/8", 200)
	wantUsed(c, "/files/1")
	c.Ask("DELETE /files/1", "").Want(200)
	wantUsed(c, "/files/1?area=backup")
	c.Ask("POST /files/1/restore", "").Want(200)
	wantUsed(c, "/files/1")
}

func TestOnlyTheUploaderSeesNotices(t *testing.T) {
	t.Parallel()
	ann := apitest.Begin(t)
	bob, eve := ann.As("bob"), ann.Add("eve")
	send(bob, "m=carla@example.com&notify=1&d=ann", "ann")
	if got := recordOf(bob, "/files/1?d=ann"); len(got.Notifications) != 1 ||
		got.Notifications[0].To != "carla@example.com" ||
		!got.Notify {
		t.Errorf("the uploader sees %+v", got)
	}
	for _, path := range []string{"/files/1", "/files/1?d=ANN"} {
		if got := recordOf(ann, path); got.Notifications != nil || got.Notify {
			t.Errorf("the owner sees %+v", got)
		}
	}
	eve.Ask("GET /files/1?d=ann", "").Want(404)
	for _, path := range []string{
		"/files/2?d=ann", "/files/1?d=nobody", "/files/1?d=%23", "/files/1?d=ann&area=backup", "/files/1",
	} {
		if says := bob.Ask("GET "+path, "").Want(404).Header.Get("Ferry-Error"); strings.Contains(says, "carla") {
			t.Errorf("%s: %s", path, says)
		}
	}
	if _, err := ann.Service.Files().Sent(t.Context(), files.By{
		User:            "bob",
		UserIncarnation: 1,
	}, "ann", 1); err == nil {
		t.Error("a later user of the uploader's name sees the file")
	}
	ann.Ask("DELETE /files/1", "").Want(200)
	bob.Ask("GET /files/1?d=ann", "").Want(404)
}

func TestPrunedNoticeIsStillListed(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.Retention.KeepDays = 0 })
	f := send(c, "m=carla@example.com", "ann")
	c.Deliver()
	fetch(c, f, 0, "curl/8", 200)
	c.Clock.Advance(91 * 24 * time.Hour)
	_, err := c.Data.Table.DeleteExpired(t.Context(), c.Clock.Now())
	expect.NoErr(t, err)
	c = c.As("ann")
	wantUsed(c, "/files/1")
	if n := recordOf(c, "/files/1").Notifications[0]; n.To != "carla@example.com" || n.State != "" {
		t.Errorf("the notice is %+v", n)
	}
}
