package browser_test

import (
	"fmt"
	"net/url"
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

// TestUploadedPagesCannotReachTheService sends what browsers run as pages or pictures, and looks whether it
// runs in the service's origin: each would set the window's name.
func TestUploadedPagesCannotReachTheService(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Desk())
	b.Expect("frame", "Refused", "violates", "Content Security Policy")
	script := `<script>top.name = "attacked"; localStorage.setItem("attacked", "1")</script>`
	for name, content := range map[string]string{
		"a.html": "<!doctype html>" + script, "a.svg": `<svg xmlns="http://www.w3.org/2000/svg">` + script + `</svg>`,
		"a.xml":   `<?xml version="1.0"?><x:html xmlns:x="http://www.w3.org/1999/xhtml"><x:script>top.name="attacked"</x:script></x:html>`,
		"a.xhtml": `<html xmlns="http://www.w3.org/1999/xhtml"><body>` + script + `</body></html>`,
		"a.pdf":   "%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\ntrailer<</Root 1 0 R>>",
		"a.txt":   script, "a.png": "<!doctype html>" + script,
	} {
		for _, kind := range []string{"text/html", "image/svg+xml", "application/xhtml+xml", "image/png", "text/plain", ""} {
			link := s.As("alice").Ask("POST /upload?file="+name, content, "Content-Type", kind).Want(200).File().LinkURL
			b.Visit(link)
			b.Is(`new Promise(done => setTimeout(() => done(true), 20))`)
			for _, wish := range []string{"&download=1", "&preview"} {
				// As a subresource that would be a document, where the browser lets it be one.
				b.Is(`new Promise(done => { for (const tag of ["iframe", "object", "embed"]) { const e = document.createElement(tag); ` +
					`e.src = e.data = ` + browsertest.Quoted(link+wish) + `; document.body.append(e) } setTimeout(() => done(true), 30) })`)
			}
			if b.Text("window.name") != "" || b.Is("localStorage.length > 0") {
				t.Fatalf("%s as %s ran in the service's origin", name, kind)
			}
		}
	}
}

func TestHostileTextsAreShownAsTexts(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Phone())
	for _, evil := range []string{
		`<img src=x onerror=alert(1)>.txt`, `"><script>alert(1)</script>`, `' onmouseover='alert(1)`, "\u202egnp.exe", `{{.Look}}`, `javascript:alert(1)`,
		strings.Repeat("long", 60),
	} {
		r := s.As("alice")
		b.Visit(r.Upload("file="+url.QueryEscape(evil)+"&m=bob@example.com&i="+url.QueryEscape(evil), "x").LinkURL)
		b.WaitText("alice")
		b.Fits("a hostile name")
		if b.Number("document.querySelectorAll('main script, main [onerror], main [onmouseover]').length") > 0 {
			t.Errorf("%q became markup", evil)
		}
	}
}
