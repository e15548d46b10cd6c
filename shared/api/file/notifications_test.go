package file_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
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

func getAnswer(s *apitest.Server, path, user string) (a answer) {
	s.Helper()
	resp := s.Request("GET", path, nil, "Authorization", apitest.Basic(user, password))
	text := s.Text(resp)
	if err := json.Unmarshal([]byte(text), &a); err != nil || resp.StatusCode != 200 {
		s.Fatalf("%s: status %d, %v: %s", path, resp.StatusCode, err, text)
	}
	return a
}

// send uploads for a user, and returns the new file's record.
func send(s *apitest.Server, from, query, owner string) files.File {
	s.Helper()
	s.Put(s.Login(from, password), "file=x&"+query, "content")
	page, err := file.Service(s.Data.Ports).List(s.Context(), auth.User{Name: owner}, blob.Files, 0, 1)
	if err != nil || len(page.Files) != 1 {
		s.Fatalf("listing: %v, %v", page, err)
	}
	return page.Files[0].File
}

// fetch downloads a file by a recipient's link.
func fetch(s *apitest.Server, f files.File, recipient int, agent string) {
	s.Helper()
	token := s.Data.Ports.Key.Recipient(f.Area, f.Owner, f.ID, f.Recipients[recipient])
	if resp := s.Request("GET", "/download/file?k="+token, nil, "User-Agent", agent); resp.StatusCode != 200 {
		s.Fatalf("downloading by recipient %d: status %d", recipient, resp.StatusCode)
	}
}

// eventually waits for a count, which may take a moment.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !waitFor(done) {
		t.Fatalf("%s is missing", what)
	}
}

func TestUploaderSeesTheStateOfEachNotice(t *testing.T) {
	t.Parallel()
	s := begin(t)
	f := send(s, "alice", "c=%2B393401234567&m=carla@example.com", "alice")
	before := getAnswer(s, "/files/1", "alice").Notifications
	if len(before) != 2 {
		t.Fatalf("there are %d notices, want 2", len(before))
	}
	for i, want := range []struct{ channel, to string }{{"sms", "+393401234567"}, {"mail", "carla@example.com"}} {
		n := before[i]
		if n.Channel != want.channel || n.To != want.to || n.State != "queued" || n.ID != f.Recipients[i] || n.Created == "" || n.Tries != 0 || n.Sent != "" {
			t.Errorf("notice %d is %+v", i, n)
		}
	}
	s.Deliver()
	for _, n := range getAnswer(s, "/files/1", "alice").Notifications {
		if n.State != "sent" || n.Sent == "" || n.Tries != 1 {
			t.Errorf("after sending, a notice is %+v", n)
		}
	}
	err := notify.Record(t.Context(), s.Data.Ports.Table, s.Clock.Now(), notify.Feedback{ID: f.Recipients[1], Kind: notify.Bounced, Detail: "no such mailbox"})
	if err != nil {
		t.Fatal(err)
	}
	after := getAnswer(s, "/files/1", "alice").Notifications
	if after[0].State != "sent" || after[1].State != "failed" || !strings.Contains(after[1].LastError, "no such mailbox") || after[1].Failed == "" {
		t.Errorf("after a bounce, the notices are %+v", after)
	}
}

func TestDownloadsAreCountedPerLink(t *testing.T) {
	t.Parallel()
	s := begin(t)
	f := send(s, "alice", "c=%2B393401234567&m=carla@example.com", "alice")
	const person, robot = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"
	fetch(s, f, 1, person)
	fetch(s, f, 1, person)
	fetch(s, f, 1, robot)
	fetch(s, f, 0, robot)
	s.Request("GET", "/download/file?k="+file.Links(s.Data.Ports).Token(f), nil)
	var got answer
	eventually(t, "the last count", func() bool {
		got = getAnswer(s, "/files/1", "alice")
		return got.Downloads.Count == 1 && got.Notifications[1].Downloads.Count == 2 && got.Notifications[1].Downloads.Previews == 1 && got.Notifications[0].Downloads.Previews == 1
	})
	by := got.Notifications[1].Downloads
	if by.First == "" || by.Last < by.First || by.LastPreview == "" {
		t.Errorf("the times are %+v", by)
	}
	if other := got.Notifications[0].Downloads; other.Count != 0 || other.First != "" || other.Last != "" {
		t.Errorf("a link that only a robot has opened shows %+v", other)
	}
}

func TestDownloadCountsSurviveDeleteAndRestore(t *testing.T) {
	t.Parallel()
	s := begin(t)
	f := send(s, "alice", "m=carla@example.com", "alice")
	fetch(s, f, 0, "curl/8")
	used := func(path string) bool { return getAnswer(s, path, "alice").Notifications[0].Downloads.Count == 1 }
	eventually(t, "the count", func() bool { return used("/files/1") })
	auth := apitest.Basic("alice", password)
	s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", auth), 200)
	if !used("/files/1?area=backup") {
		t.Error("the counts are lost in the backup area")
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 200)
	if !used("/files/1") {
		t.Error("the counts are lost after the restore")
	}
}

func TestOnlyTheUploaderSeesNotices(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.AddUser("eve", password)
	send(s, "bob", "m=carla@example.com&notify=1&d=alice", "alice")
	if got := getAnswer(s, "/files/1?d=alice", "bob"); len(got.Notifications) != 1 || got.Notifications[0].To != "carla@example.com" || !got.Notify {
		t.Errorf("the uploader sees %+v", got)
	}
	if got := getAnswer(s, "/files/1", "alice"); got.Notifications != nil || got.Notify {
		t.Errorf("the owner sees %+v", got)
	}
	for _, c := range []struct {
		what, user, path string
		status           int
	}{
		{"another user", "eve", "/files/1?d=alice", 404},
		{"another file", "bob", "/files/2?d=alice", 404},
		{"an unknown owner", "bob", "/files/1?d=nobody", 404},
		{"an impossible owner", "bob", "/files/1?d=" + url.QueryEscape("#"), 404},
		{"another user's backup area", "bob", "/files/1?d=alice&area=backup", 404},
		{"a file of the caller with that id", "bob", "/files/1", 404},
	} {
		resp := s.Request("GET", c.path, nil, "Authorization", apitest.Basic(c.user, password))
		if s.Decode(resp, c.status); strings.Contains(resp.Header.Get("Ferry-Error"), "carla") {
			t.Errorf("%s: %s", c.what, resp.Header.Get("Ferry-Error"))
		}
	}
	if got := getAnswer(s, "/files/1?d=ALICE", "alice"); got.Notifications != nil {
		t.Errorf("the owner who names herself sees %+v", got)
	}
	if _, err := file.Service(s.Data.Ports).Sent(t.Context(), files.By{User: "bob", UserIncarnation: 1}, "alice", 1); err == nil {
		t.Error("a later user of the uploader's name sees the file")
	}
	s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", apitest.Basic("alice", password)), 200)
	if resp := s.Request("GET", "/files/1?d=alice", nil, "Authorization", apitest.Basic("bob", password)); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a file deleted by its owner: status %d", resp.StatusCode)
	}
}

func TestPrunedNoticeIsStillListed(t *testing.T) {
	t.Parallel()
	s := begin(t, func(set *api.Settings, _ *local.ServiceOptions) { set.Retention.KeepDays = 0 })
	f := send(s, "alice", "m=carla@example.com", "alice")
	s.Deliver()
	fetch(s, f, 0, "curl/8")
	s.Clock.Advance(91 * 24 * time.Hour)
	if _, err := s.Data.Table.DeleteExpired(t.Context(), s.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the count", func() bool { return getAnswer(s, "/files/1", "alice").Notifications[0].Downloads.Count == 1 })
	if n := getAnswer(s, "/files/1", "alice").Notifications[0]; n.To != "carla@example.com" || n.State != "" {
		t.Errorf("the notice is %+v", n)
	}
}
