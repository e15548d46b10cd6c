package browser_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/web/browsertest"
	"ferry/shared/wire"
)

// record returns what is known of alice's first file.
func record(s *apitest.Server) (r struct{ Links []wire.Link }) {
	s.Helper()
	return apitest.Read[struct{ Links []wire.Link }](s.As("alice").Ask("GET /files/1", "").Want(200))
}

func TestALinkIsOpenedAndItsFileSaved(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		link := s.As("alice").Upload("file=hello.txt", strings.Repeat("hello\n", 1000)).LinkURL
		folder := b.Downloads()
		b.Visit(link)
		b.Seen("link", "a.primary")
		used := record(s).Links[0].Used
		expect.Equal(t, "downloads and previews by opening the page", used.Count+used.Previews, 0)
		b.Click("a.primary")
		if got := b.Saved(folder, "hello.txt"); string(got) != strings.Repeat("hello\n", 1000) {
			t.Errorf("saved %d bytes", len(got))
		}
		b.Until("the download is counted", func() bool { return record(s).Links[0].Used.Count == 1 })
		large := strings.Repeat("large\n", 720_000)
		link = s.As("alice").Upload("file=large.txt", large).LinkURL
		b.Visit(link)
		b.Click("a.primary")
		expect.Equal(t, "whether the large file is saved", string(b.Saved(folder, "large.txt")) == large, true)
		if s.InStack() { // then the browser had it from the store
			s.Send("GET "+link, "").Want(302)
		}
	})
}

func TestALimitedLinkServesAsManyPeopleAsItSays(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, first *browsertest.Tab) {
		link := s.As("alice").Upload("file=once.txt&downloads=1", "only once").LinkURL
		second := browsertest.Open(t, s.Root, first.View)
		folder := first.Downloads()
		first.Visit(link)
		second.Visit(link)
		second.Seen("link-limited")
		first.Click("a.primary")
		expect.Equal(t, "what was saved", string(first.Saved(folder, "once.txt")), "only once")
		second.Press("a.primary")
		second.Lacks("a.primary")
		second.Seen("link-used-up")
	})
}

func TestAProtectedLinkAsksForItsPasswordOnThePage(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		link := s.As("alice").Upload("file=secret-plan.txt", "the plan", "Ferry-Link-Password", "open sesame").LinkURL
		folder := b.Downloads()
		b.Visit(link)
		b.Seen("link-protected", "#password")
		b.Submit("#password", "close sesame")
		b.Seen("link-protected-wrong", "[role=alert]")
		b.Submit("#password", "open sesame")
		b.WaitText("secret-plan.txt")
		b.Click("a.primary")
		expect.Equal(t, "what was saved", string(b.Saved(folder, "secret-plan.txt")), "the plan")
	})
}
