package browser_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

// bundle uploads files of a bundle as alice, and returns its link.
func bundle(s *apitest.Server, query string, files map[string]string) string {
	s.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, content := range files {
		part, err := form.CreatePart(map[string][]string{
			"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename=%q`, name)},
		})
		if err == nil {
			_, err = part.Write([]byte(content))
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	form.Close()
	return s.As("alice").Ask("POST /upload?bundle="+query, body.String(), "Content-Type", form.FormDataContentType()).Want(200).File().LinkURL
}

// picture is a PNG of one pixel.
const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\xdac\xfc\xcf\xc0P\x0f\x00\x04\x85\x01\x80\x84\xa9\x8c!\x00\x00\x00\x00IEND\xaeB`\x82"

func TestABundleIsLookedThroughAndOneOfItsFilesSaved(t *testing.T) {
	each(t, true, func(t *testing.T, v view) {
		s, b := begin(t, v)
		files := map[string]string{"readme.txt": "read me", "tree/a/deep.txt": "deep", "photos/1.png": picture, "photos/2.png": picture}
		for i := range 60 {
			files[fmt.Sprintf("many/%02d-%s.bin", i, strings.Repeat("long", 1+i%20))] = "x"
		}
		link := bundle(s, "trip.zip", files)
		folder := b.downloads()
		b.visit(link)
		b.waitText("readme.txt")
		b.seen("bundle")
		b.fill("input[name=q]", "deep")
		b.press("form[role=search] button")
		b.waitText("deep.txt")
		b.seen("bundle-search")
		b.click("a[href*='entry=tree']")
		if got := b.saved(folder, "deep.txt"); string(got) != "deep" {
			t.Errorf("saved %q", got)
		}
		b.visit(link)
		b.press("nav.tabs a:last-child")
		b.waitFor("ul.grid img")
		b.seen("bundle-pictures")
		if n := get[int](b, "[...document.images].filter(i => i.naturalWidth === 1).length"); n < 2 {
			t.Errorf("%d pictures are shown", n)
		}
		if got := record(s).Links[0].Used.Count; got > 1 {
			t.Errorf("pictures and one file count as %d downloads", got)
		}
	})
}

func TestAFileIsFoundSharedAndDeleted(t *testing.T) {
	each(t, false, func(t *testing.T, v view) {
		s, b := begin(t, v)
		b.login("alice", password)
		b.visit("files")
		b.seen("files-empty")
		alice := s.As("alice")
		for i := range 8 {
			alice.Upload(fmt.Sprintf("file=report-%d-of-the-year-%s.pdf&m=bob%d@example.com", i, strings.Repeat("x", 9*i), i), "text")
		}
		s.Deliver()
		b.visit("files")
		b.seen("files")
		b.fill("input[name=search]", "report-3")
		b.press("#search button")
		b.waitText("report-3")
		b.press("tbody th a")
		b.waitFor("aside.panel")
		b.seen("file")
		b.visit("files?search=nothing-like-this")
		b.seen("files-nothing")
		b.visit("files?id=3")
		b.click("aside .danger summary")
		b.click("aside .danger form button")
		b.waitFor(".alert.good")
		b.seen("files-deleted")
		alice.Ask("GET /files/3", "").Want(404)
		b.click(".alert.good form button")
		if !apitest.Eventually(func() bool { return alice.Ask("GET /files/3", "").Code == 200 }) {
			t.Error("deleting was not undone")
		}
		alice.Ask("DELETE /files/4", "").Want(200)
		b.visit("files?area=backup")
		b.waitText("report-3")
		b.seen("backup")
		b.visit("files")
		b.click("tbody tr:nth-child(1) input[type=checkbox]")
		b.click("tbody tr:nth-child(2) input[type=checkbox]")
		b.seen("files-chosen")
		b.click(".bulk .danger summary")
		b.click(".bulk .danger button")
		if !apitest.Eventually(func() bool {
			return alice.Ask("GET /files/8", "").Code == 404 && alice.Ask("GET /files/7", "").Code == 404
		}) {
			t.Error("the chosen files were not deleted")
		}
	})
}

func TestARequestIsMadeWatchedAndEnded(t *testing.T) {
	each(t, false, func(t *testing.T, v view) {
		s, b := begin(t, v)
		b.login("alice", password)
		b.visit("requests")
		b.seen("requests-empty")
		b.press("main a.primary")
		b.fill("#title", "Invoices <i>of</i> May")
		b.seen("request-new")
		b.click("#request button.primary")
		b.waitFor("#link")
		b.seen("request-made")
		link := get[string](b, "document.querySelector('#link').value")
		s.Send("POST "+link+"&file=may.pdf&by=Bob", "content", "Content-Type", "application/pdf").Want(200)
		b.visit("requests")
		b.waitText("Invoices <i>of</i> May")
		b.click("details.fold summary")
		b.seen("requests")
		b.waitText("may.pdf")
		b.click("details.danger summary")
		b.click("details.danger form button")
		b.waitFor(".alert.good")
		if a := s.Send("POST "+link+"&file=june.pdf", "content"); a.Code != http.StatusUnauthorized {
			t.Errorf("an ended request answers %d", a.Code)
		}
	})
}
