package local_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
	"ferry/shared/table"
)

// happened checks the events since its last call, without their ids, sorted by
// type.
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

func TestTheLargestUploadAndItsEventsFitIntoOneTransaction(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Listening)
	s.AddUser("alice", password, func(u *auth.User) { u.Quota = 1 << 20 })
	most := files.Sending{Recipients: make([]files.Message, 2)}.MaxFiles()
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

func TestFailedRequestsRecordNoEvent(t *testing.T) {
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

func TestACountAndItsEventDoNotNeedEachOther(t *testing.T) {
	t.Parallel()
	for refused, want := range map[int]struct {
		events []string
		link   string
	}{1: {[]string{"file.downloaded files/alice/1 area=files"}, `"expires":`}, 2: {nil, `"downloads":1`}} {
		s := apitest.New(t, apitest.Listening)
		s.CountAtOnce()
		s.AddUser("alice", password)
		file := s.Put(s.Login("alice", password), "file=x", "x").Files[0]
		h := happened{s, map[string]bool{}}
		h.now("file.uploaded files/alice/1 area=files")
		tries := 0
		s.Calls.Before("table.Write", func() error {
			if tries++; tries == refused {
				return table.ErrBusy
			}
			return nil
		})
		s.Text(s.Request("GET", strings.TrimPrefix(file.LinkURL, s.Base), nil))
		h.now(want.events...)
		s.Close() // writes counts that wait
		s = apitest.Open(t, s.Dir)
		for _, link := range s.Partitions("link#") {
			if !strings.Contains(link, want.link) {
				t.Errorf("write %d was refused, and the link is %s", refused, link)
			}
		}
	}
}

func TestNoEventIsRecordedUnlessEventsAreOn(t *testing.T) {
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
