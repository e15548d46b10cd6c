package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/web/browsertest"
)

// bundle uploads files of a bundle as alice, and returns its link. Paths and contents alternate.
func bundle(s *apitest.Server, query string, files ...string) string {
	s.Helper()
	for i := 0; i < len(files); i += 2 {
		files[i] = "@" + files[i]
	}
	body, kind := apitest.Form(files...)
	return s.As("alice").Ask("POST /upload?bundle="+query, body, "Content-Type", kind).Want(200).File().LinkURL
}

// picture is a PNG of one pixel.
const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\xdac\xfc\xcf\xc0P\x0f\x00\x04\x85\x01\x80\x84\xa9\x8c!\x00\x00\x00\x00IEND\xaeB`\x82"

func TestABundleIsLookedThroughAndOneOfItsFilesSaved(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		files := []string{
			"readme.txt", "read me", "tree/a/deep.txt", "deep", "photos/1.png", picture, "photos/2.png", picture,
		}
		for i := range 60 {
			files = append(files, fmt.Sprintf("many/%02d-%s.bin", i, strings.Repeat("long", 1+i%20)), "x")
		}
		link := bundle(s, "trip.zip", files...)
		folder := b.Downloads()
		b.Visit(link)
		b.WaitText("readme.txt")
		b.Seen("bundle")
		b.Fill("input[name=q]", "deep")
		b.Press("form[role=search] button")
		b.WaitText("deep.txt")
		b.Seen("bundle-search")
		b.Click("a[href*='entry=tree']")
		expect.Equal(t, "what was saved", string(b.Saved(folder, "deep.txt")), "deep")
		b.Visit(link)
		b.Press("nav.tabs a:last-child")
		b.Seen("bundle-pictures", "ul.grid img")
		if n := b.Number("[...document.images].filter(i => i.naturalWidth === 1).length"); n < 2 {
			t.Errorf("%v pictures are shown", n)
		}
	})
}

func TestAFileIsFoundSharedAndDeleted(t *testing.T) {
	each(t, false, func(_ *testing.T, s *apitest.Server, b *browsertest.Tab) {
		at(s, b, "files")
		b.Seen("files-empty")
		alice := s.As("alice")
		for i := range 8 {
			alice.Upload(
				fmt.Sprintf("file=report-%d-of-the-year-%s.pdf&m=bob%d@example.com", i, strings.Repeat("x", 9*i), i),
				"text",
			)
		}
		s.Deliver()
		gone := func(ids ...int) {
			b.Until("the files are deleted", func() bool {
				return !slices.ContainsFunc(ids, func(id int) bool {
					return alice.Ask(fmt.Sprint("GET /files/", id), "").Code != 404
				})
			})
		}
		b.Visit("files")
		b.Seen("files")
		b.Fill("input[name=search]", "report-3")
		b.Press("#search button")
		b.WaitText("report-3")
		b.Press("tbody th a")
		b.Seen("file", "aside.panel")
		b.Visit("files?search=nothing-like-this")
		b.Seen("files-nothing")
		b.Visit("files?id=3")
		b.Confirm("aside .danger")
		b.Seen("files-deleted", ".alert.good")
		gone(3)
		b.Click(".alert.good form button")
		b.Until("deleting is undone", func() bool { return alice.Ask("GET /files/3", "").Code == 200 })
		alice.Ask("DELETE /files/4", "").Want(200)
		b.Visit("files?area=backup")
		b.WaitText("report-3")
		b.Seen("backup")
		b.Visit("files")
		b.Click("tbody tr:nth-child(1) input[type=checkbox]")
		b.Click("tbody tr:nth-child(2) input[type=checkbox]")
		b.Seen("files-chosen")
		b.Confirm(".bulk .danger")
		gone(7, 8)
	})
}

func TestFilesAreSortedByOneChoice(t *testing.T) {
	each(t, false, func(_ *testing.T, s *apitest.Server, b *browsertest.Tab) {
		s.As("alice").Upload("file=first.txt", "text")
		s.As("alice").Upload("file=second.txt", "text")
		at(s, b, "files")
		for order, want := range map[string]string{"old": "first.txt", "new": "second.txt"} {
			b.WaitFor("tbody .pick input") // the script is there
			b.Is(`{ const s = document.querySelector("select[name=sort]"); s.value = "` +
				order +
				`"; s.dispatchEvent(new Event("change", { bubbles: true })); true }`)
			b.Until("the first is "+want, func() bool {
				return strings.HasSuffix(b.Address(), "sort="+order) &&
					b.Text("document.querySelector('tbody th')?.innerText ?? ''") == want
			})
		}
		b.Seen("files-sorted")
	})
}

func TestARequestIsMadeWatchedAndEnded(t *testing.T) {
	each(t, false, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		at(s, b, "requests")
		b.Seen("requests-empty")
		b.Press("main a.primary")
		b.Fill("#title", "Invoices <i>of</i> May")
		b.Seen("request-new")
		b.Click("#request button.primary")
		b.Seen("request-made", "#link")
		link := b.Text("document.querySelector('#link').value")
		s.Send("POST "+link+"&file=may.pdf&by=Bob", "content", "Content-Type", "application/pdf").Want(200)
		b.Visit("requests")
		b.WaitText("Invoices <i>of</i> May")
		b.Click("details.fold summary")
		b.Seen("requests")
		b.WaitText("may.pdf")
		b.Confirm("details.danger")
		b.WaitFor(".alert.good")
		expect.Equal(t, "status of an ended request", s.Send("POST "+link+"&file=june.pdf", "content").Code, 401)
	})
}

func TestActionsSayWhatFailed(t *testing.T) {
	s, b := begin(t, browsertest.Desk())
	alice := s.As("alice")
	for range 3 {
		alice.Upload("file=a.txt", "text")
	}
	at(s, b, "files?id=1")
	b.WaitFor("aside .danger summary")
	b.Is(`{
		const real = fetch; // slow, and of pages none
		window.fetch = async (to, how) => {
			await new Promise(done => setTimeout(done, 600));
			if (how.headers.Accept === "text/html") throw new TypeError("offline");
			return real(to, how);
		};
		true
	}`)
	b.Confirm("aside .danger")
	b.WaitFor("aside .danger form button[aria-busy=true]")
	b.WaitFor(".alert.bad[role=alert]")
	b.WaitText("the page could not be loaded again")
	alice.Ask("GET /files/1", "").Want(404)

	b.Visit("files")
	b.Click("tbody tr:nth-child(1) input[type=checkbox]")
	b.Click("tbody tr:nth-child(2) input[type=checkbox]")
	b.Offline(true)
	b.Confirm(".bulk .danger")
	b.WaitText("2 failed: No connection")
	b.WaitFor(".alert.bad[role=alert]")
	b.WaitText("files chosen")
	b.Offline(false)
	alice.Ask("GET /files/2", "").Want(200)
}
