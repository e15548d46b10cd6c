package file_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
)

type downloads struct {
	Count, Previews          int64
	First, Last, LastPreview string
}

type answer struct {
	Downloads     downloads
	Notify        bool
	Notifications []struct {
		ID, Channel, To, State, Created, LastError, Provider, Sent, Delivered, Failed string
		Tries                                                                         int64
		Downloads                                                                     downloads
	}
}

// recordOf returns what a caller sees of a file.
func recordOf(c apitest.Caller, path string) answer {
	c.Helper()
	return apitest.Read[answer](c.Ask("GET "+path, "").Want(200))
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

func TestUploaderSeesTheStateOfEachNotice(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	f := send(c, "c=%2B393401234567&m=carla@example.com", "ann")
	before := recordOf(c, "/files/1").Notifications
	if len(before) != 2 {
		t.Fatalf("there are %d notices, want 2", len(before))
	}
	for i, want := range []struct{ channel, to string }{{"sms", "+393401234567"}, {"mail", "carla@example.com"}} {
		n := before[i]
		if n.Channel != want.channel || n.To != want.to || n.State != "queued" || n.ID != f.Recipients[i] || n.Created == "" || n.Tries != 0 || n.Sent != "" {
			t.Errorf("notice %d is %+v", i, n)
		}
	}
	c.Deliver()
	for _, n := range recordOf(c, "/files/1").Notifications {
		if n.State != "sent" || n.Sent == "" || n.Tries != 1 {
			t.Errorf("after sending, a notice is %+v", n)
		}
	}
	bounce := notify.Feedback{ID: f.Recipients[1], Kind: notify.Bounced, Detail: "no such mailbox"}
	expect.NoErr(t, notify.Record(t.Context(), c.Data.Ports.Table, c.Clock.Now(), bounce))
	after := recordOf(c, "/files/1").Notifications
	if after[0].State != "sent" || after[1].State != "failed" || !strings.Contains(after[1].LastError, "no such mailbox") || after[1].Failed == "" {
		t.Errorf("after a bounce, the notices are %+v", after)
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
	var got answer
	expect.Eventually(func() bool {
		got = recordOf(c, "/files/1")
		return got.Downloads.Count == 1 && got.Notifications[1].Downloads.Count == 2 && got.Notifications[1].Downloads.Previews == 1 && got.Notifications[0].Downloads.Previews == 1
	})
	own, by, other := got.Downloads, got.Notifications[1].Downloads, got.Notifications[0].Downloads
	if own.Count != 1 || by.Count != 2 || by.Previews != 1 || by.First == "" || by.Last < by.First || by.LastPreview == "" {
		t.Errorf("the downloads are %+v and %+v", own, by)
	}
	if other.Previews != 1 || other.Count != 0 || other.First != "" || other.Last != "" {
		t.Errorf("a link that only a robot has opened shows %+v", other)
	}
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
	if got := recordOf(bob, "/files/1?d=ann"); len(got.Notifications) != 1 || got.Notifications[0].To != "carla@example.com" || !got.Notify {
		t.Errorf("the uploader sees %+v", got)
	}
	for _, path := range []string{"/files/1", "/files/1?d=ANN"} {
		if got := recordOf(ann, path); got.Notifications != nil || got.Notify {
			t.Errorf("the owner sees %+v", got)
		}
	}
	eve.Ask("GET /files/1?d=ann", "").Want(404)
	for what, path := range map[string]string{
		"another file": "/files/2?d=ann", "an unknown owner": "/files/1?d=nobody", "an impossible owner": "/files/1?d=%23",
		"another user's backup area": "/files/1?d=ann&area=backup", "a file of the caller with that id": "/files/1",
	} {
		if says := bob.Ask("GET "+path, "").Want(404).Header.Get("Ferry-Error"); strings.Contains(says, "carla") {
			t.Errorf("%s: %s", what, says)
		}
	}
	if _, err := ann.Service.Files().Sent(t.Context(), files.By{User: "bob", UserIncarnation: 1}, "ann", 1); err == nil {
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
