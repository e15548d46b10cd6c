package api_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/files"
	"ferry/shared/table"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/api/endpoint"
	"ferry/shared/auth"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
)

// postman takes mail for all but one, and keeps it.
type postman struct{ letters *[]mail.Message }

func (p postman) Send(_ context.Context, m mail.Message) (string, error) {
	if strings.HasPrefix(m.To, "nobody@") {
		return "", fmt.Errorf("%w: 550 %s is not known, see https://example.com/secret", mail.ErrPermanent, m.To)
	}
	*p.letters = append(*p.letters, m)
	return "1", nil
}

// happened returns the events that have come since the last time, without the
// ids in them, in the order of their types.
type happened struct {
	*apitest.Server
	seen map[string]bool
}

func (h happened) now(want ...string) {
	h.Helper()
	var got []string
	for _, e := range h.Events() {
		if h.seen[e.Text] {
			continue
		}
		h.seen[e.Text] = true
		if e.Source != h.Base {
			h.Errorf("the source is %s", e.Source)
		}
		text := e.Type + " " + e.Subject
		for _, name := range []string{"area", "reason", "uploader", "channel", "to", "sender", "error", "how"} {
			if v, ok := e.Data[name]; ok {
				text += fmt.Sprintf(" %s=%v", name, v)
			}
		}
		if _, ok := e.Data["notification"]; ok && e.Type == "file.downloaded" {
			text += " by a recipient's link"
		}
		got = append(got, text)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		h.Errorf("what happened is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatHappensIsRecordedOnce(t *testing.T) {
	t.Parallel()
	var letters []mail.Message
	s := apitest.New(t, apitest.Listening, func(_ *endpoint.Settings, o *api.Options) { o.Mail = postman{&letters} })
	h := happened{s, map[string]bool{}}
	s.AddUser("alice", password)
	s.AddUser("bob", password)
	s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	bearer := s.Login("alice", password)
	auth := []string{"Authorization", "Bearer " + bearer}
	do := func(method, path string, headers ...string) {
		t.Helper()
		if resp := s.Request(method, path, nil, append(headers, auth...)...); resp.StatusCode > 299 {
			t.Fatalf("%s %s is answered %d: %s", method, path, resp.StatusCode, resp.Header.Get("Ferry-Error"))
		}
	}
	h.now()

	own := s.Put(bearer, "file=a&c=%2B393401234567&m=carol@example.com", "hello").Files[0]
	s.Put(bearer, "file=b&d=bob&m=nobody@example.com", "hello")
	h.now("file.uploaded files/alice/1 area=files", "file.uploaded files/bob/1 area=files uploader=alice")

	s.Deliver()
	h.now("link.sent files/alice/1 channel=mail to=c***@example.com sender=alice", "link.sent files/alice/1 channel=sms to=+39***67 sender=alice",
		"link.failed files/bob/1 channel=mail to=n***@example.com sender=alice error="+
			"the notice cannot be delivered: mail: refused for good: 550 n***@example.com is not known, see [link]")

	session := begun(s, bearer, `{"name":"c","length":5}`)
	h.now()
	s.Text(s.Request("PUT", partOf(s, bearer, session), strings.NewReader("hello")))
	do("POST", session+"/complete")
	do("POST", session+"/complete")
	h.now("file.uploaded files/alice/2 area=files")

	link := strings.TrimPrefix(own.LinkURL, s.Base)
	do("GET", link, "User-Agent", "WhatsApp/2.23.20.0")
	do("GET", link, "Accept", "text/html")
	do("GET", link, "Range", "bytes=0-1")
	do("HEAD", link)
	h.now()
	do("GET", link)
	do("GET", link)
	h.now("file.downloaded files/alice/1 area=files", "file.downloaded files/alice/1 area=files")
	do("GET", strings.TrimPrefix(regexp.MustCompile(`http\S+/download/file\S+`).FindString(letters[0].Text), s.Base))
	h.now("file.downloaded files/alice/1 area=files by a recipient's link")

	do("DELETE", "/files/1")
	h.now("file.deleted files/alice/1 area=backup reason=user")
	do("POST", "/files/1/restore")
	h.now("file.restored files/alice/1 area=files")
	do("DELETE", "/files/1")
	h.now("file.deleted files/alice/1 area=backup reason=user")

	forget := s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200)
	s.Deliver()
	change := strings.TrimPrefix(forget.LinkURL, s.Base) + "&z=a+password+of+my+own&p="
	s.Request("POST", change+"00000000", nil)
	h.now()
	do("POST", change+pin(t, letters[len(letters)-1].Text))
	h.now("user.password-changed users/alice how=forgotten")
	first := s.Decode(s.Request("POST", "/auth/first", nil, "Authorization", apitest.Basic("new", password)), 200)
	do("POST", strings.TrimPrefix(first.LinkURL, s.Base)+"&z=a+password+of+my+own")
	h.now("user.password-changed users/new how=first-access")

	sweep := func(days int) {
		t.Helper()
		s.Clock.Advance(time.Duration(days) * 24 * time.Hour)
		if _, err := s.Service.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep(31)
	h.now("file.deleted files/alice/2 area=backup reason=retention", "file.deleted files/bob/1 area=backup reason=retention uploader=alice")
	sweep(91)
	h.now("file.deleted files/alice/1 area=backup reason=purge", "file.deleted files/alice/2 area=backup reason=purge",
		"file.deleted files/bob/1 area=backup reason=purge uploader=alice")

	for text := range h.seen {
		for _, secret := range []string{"carol@", "nobody@", "3401234567", "k=", "z=", "http://" + s.Root, "/download/"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s stands in %s", secret, text)
			}
		}
	}
}

func TestTheLargestUploadFitsOneTransactionWithItsEvents(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Listening)
	s.AddUser("alice", password, func(u *auth.User) { u.Quota = 1 << 20 })
	most := files.Sending{Recipients: make([]notify.Notice, 2)}.MaxFiles()
	var form strings.Builder
	for i := range most {
		fmt.Fprintf(&form, "--b\r\nContent-Disposition: form-data; name=f; filename=%d\r\n\r\nx\r\n", i)
	}
	form.WriteString("--b--\r\n")
	resp := s.Request("POST", "/upload?m=bob@example.com&c=%2B393401234567&notify=1", strings.NewReader(form.String()),
		"Authorization", apitest.Basic("alice", password), "Content-Type", "multipart/form-data; boundary=b", "Idempotency-Key", "1")
	if resp.StatusCode != 200 || len(s.Events()) != most {
		t.Errorf("status %d (%s), %d events of %d files", resp.StatusCode, resp.Header.Get("Ferry-Error"), len(s.Events()), most)
	}
}

func TestWhatDoesNotHappenIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Listening)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	s.Calls.Before("table.Write", func() error { return context.DeadlineExceeded })
	s.Text(s.Request("POST", "/upload?file=x", strings.NewReader("x"), "Authorization", "Bearer "+bearer))
	s.Calls.Before("table.Write", nil)
	s.Text(s.Request("DELETE", "/files/9", nil, "Authorization", "Bearer "+bearer))
	s.Text(s.Request("POST", "/files/9/restore", nil, "Authorization", "Bearer "+bearer))
	s.Text(s.Request("GET", "/download/file?k=x", nil))
	happened{s, map[string]bool{}}.now()
}

func TestADownloadOfABusyLinkIsCountedAndRecorded(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Listening)
	s.AddUser("alice", password)
	file := s.Put(s.Login("alice", password), "file=x", "x").Files[0]
	h := happened{s, map[string]bool{}}
	h.now("file.uploaded files/alice/1 area=files")
	tries := 0
	s.Calls.Before("table.Write", func() error {
		if tries++; tries == 1 {
			return table.ErrBusy
		}
		return nil
	})
	s.Text(s.Request("GET", strings.TrimPrefix(file.LinkURL, s.Base), nil))
	h.now("file.downloaded files/alice/1 area=files")
	s.Close() // writes counts that wait
	s = apitest.Open(t, s.Dir)
	for _, link := range s.Partitions("link#") {
		if !strings.Contains(link, `"downloads":1`) {
			t.Errorf("the link is %s", link)
		}
	}
}

func TestNothingIsRecordedUnlessSomebodyListens(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	file := s.Put(bearer, "file=x&m=bob@example.com", "x").Files[0]
	s.Deliver()
	s.Text(s.Request("GET", strings.TrimPrefix(file.LinkURL, s.Base), nil))
	s.Text(s.Request("DELETE", "/files/1", nil, "Authorization", "Bearer "+bearer))
	happened{s, map[string]bool{}}.now()
}
