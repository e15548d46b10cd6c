package local_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/table"
)

// wantEvents checks the types of the events that were recorded.
func wantEvents(s *apitest.Server, want ...string) {
	s.Helper()
	var got []string
	for _, e := range s.Events() {
		got = append(got, e.Type)
		apitest.Equal(s.TB, "the source", e.Source, s.Base)
	}
	slices.Sort(got)
	apitest.Equal(s.TB, "the events", got, want)
}

func TestFailedRequestsRecordNoEvent(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t, apitest.Listening)
	c.Calls.Before("table.Write", func() error { return context.DeadlineExceeded })
	c.Ask("POST /upload?file=x", "x").Want(503)
	c.Calls.Before("table.Write", nil)
	c.Ask("DELETE /files/9", "").Want(404)
	c.Ask("POST /files/9/restore", "").Want(404)
	c.Send("GET /download/file?k=x", "").Want(401)
	wantEvents(c.Server)
}

func TestACountAndItsEventDoNotNeedEachOther(t *testing.T) {
	t.Parallel()
	for refused, want := range map[int]struct {
		events []string
		link   string
	}{1: {[]string{"file.downloaded", "file.uploaded"}, `"expires":`}, 2: {[]string{"file.uploaded"}, `"downloads":1`}} {
		s := apitest.New(t, apitest.Listening)
		s.CountAtOnce()
		file := s.Begin().Upload("file=x", "x")
		tries := 0
		s.Calls.Before("table.Write", func() error {
			if tries++; tries == refused {
				return table.ErrBusy
			}
			return nil
		})
		s.Get(file.LinkURL)
		wantEvents(s, want.events...)
		s.Close() // writes counts that wait
		for _, link := range apitest.Open(t, s.Dir).Partitions("link#") {
			if !strings.Contains(link, want.link) {
				t.Errorf("write %d was refused, and the link is %s", refused, link)
			}
		}
	}
}

func TestNoEventIsRecordedUnlessEventsAreOn(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	file := c.Upload("file=x&m=bob@example.com", "x")
	c.Deliver()
	c.Get(file.LinkURL)
	c.Ask("DELETE /files/1", "").Want(200)
	wantEvents(c.Server)
}
