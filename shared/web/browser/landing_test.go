package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
	"ferry/shared/wire"
)

// record returns what is known of alice's first file.
func record(s *apitest.Server) (r struct{ Links []wire.Link }) {
	s.Helper()
	return apitest.Read[struct{ Links []wire.Link }](s.As("alice").Ask("GET /files/1", "").Want(200))
}

func TestALinkIsOpenedAndItsFileSaved(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		link := s.As("alice").Upload("file=hello.txt", strings.Repeat("hello\n", 1000)).LinkURL
		folder := b.Downloads()
		b.Visit(link)
		b.WaitFor("a.primary")
		b.Seen("link")
		if strings.Contains(b.Text("document.title"), "hello") {
			t.Error("the title names the file")
		}
		used := record(s).Links[0].Used
		apitest.Equal(t, "downloads and previews by opening the page", used.Count+used.Previews, 0)
		b.Click("a.primary")
		if got := b.Saved(folder, "hello.txt"); string(got) != strings.Repeat("hello\n", 1000) {
			t.Errorf("saved %d bytes", len(got))
		}
		b.Until("the download is counted", func() bool { return record(s).Links[0].Used.Count == 1 })
		large := strings.Repeat("large\n", 720_000)
		link = s.As("alice").Upload("file=large.txt", large).LinkURL
		b.Visit(link)
		b.Click("a.primary")
		apitest.Equal(t, "whether the large file is saved", string(b.Saved(folder, "large.txt")) == large, true)
		if s.InStack() { // then the browser had it from the store
			s.Send("GET "+link, "").Want(302)
		}
	})
}

func TestALimitedLinkServesAsManyPeopleAsItSays(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, first := begin(t, v)
		link := s.As("alice").Upload("file=once.txt&downloads=1", "only once").LinkURL
		second := browsertest.Open(t, s.Root, v)
		folder := first.Downloads()
		first.Visit(link)
		second.Visit(link)
		second.Seen("link-limited")
		first.Click("a.primary")
		apitest.Equal(t, "what was saved", string(first.Saved(folder, "once.txt")), "only once")
		second.Press("a.primary")
		second.Lacks("a.primary")
		second.Seen("link-used-up")
	})
}

func TestAProtectedLinkAsksForItsPasswordOnThePage(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		link := s.As("alice").Upload("file=secret-plan.txt", "the plan", "Ferry-Link-Password", "open sesame").LinkURL
		folder := b.Downloads()
		b.Visit(link)
		b.WaitFor("#password")
		if strings.Contains(b.Words(), "secret-plan") {
			t.Error("the page names the file before it has the password")
		}
		b.Seen("link-protected")
		b.Fill("#password", "close sesame")
		b.Press("button.primary")
		b.WaitFor("[role=alert]")
		b.Seen("link-protected-wrong")
		b.Fill("#password", "open sesame")
		b.Press("button.primary")
		b.WaitText("secret-plan.txt")
		b.Click("a.primary")
		apitest.Equal(t, "what was saved", string(b.Saved(folder, "secret-plan.txt")), "the plan")
	})
}

func TestADeadLinkSaysWhyInWords(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		alice := s.As("alice")
		ended, deleted := alice.Upload("file=a", "a"), alice.Upload("file=b", "b")
		alice.Ask(fmt.Sprintf("DELETE /files/%d/links/own", ended.ID), "").Want(200)
		alice.Ask(fmt.Sprintf("DELETE /files/%d", deleted.ID), "").Want(200)
		said := map[string]bool{}
		for name, link := range map[string]string{
			"withdrawn": ended.LinkURL, "deleted": deleted.LinkURL, "mistyped": ended.LinkURL[:len(ended.LinkURL)-1], "incomplete": s.Base + "/download/file?k=",
		} {
			b.Visit(link)
			b.Seen("dead-" + name)
			heading := b.Text("document.querySelector('h1').innerText")
			if name == "incomplete" {
				continue // which is as good as mistyped
			}
			if said[heading] {
				t.Errorf("%s: another link says %q too", name, heading)
			}
			said[heading] = true
		}
	})
}
