package browser_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
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
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		files := map[string]string{"readme.txt": "read me", "tree/a/deep.txt": "deep", "photos/1.png": picture, "photos/2.png": picture}
		for i := range 60 {
			files[fmt.Sprintf("many/%02d-%s.bin", i, strings.Repeat("long", 1+i%20))] = "x"
		}
		link := bundle(s, "trip.zip", files)
		folder := b.Downloads()
		b.Visit(link)
		b.WaitText("readme.txt")
		b.Seen("bundle")
		b.Fill("input[name=q]", "deep")
		b.Press("form[role=search] button")
		b.WaitText("deep.txt")
		b.Seen("bundle-search")
		b.Click("a[href*='entry=tree']")
		apitest.Equal(t, "what was saved", string(b.Saved(folder, "deep.txt")), "deep")
		b.Visit(link)
		b.Press("nav.tabs a:last-child")
		b.WaitFor("ul.grid img")
		b.Seen("bundle-pictures")
		if n := b.Number("[...document.images].filter(i => i.naturalWidth === 1).length"); n < 2 {
			t.Errorf("%v pictures are shown", n)
		}
		if got := record(s).Links[0].Used.Count; got > 1 {
			t.Errorf("pictures and one file count as %d downloads", got)
		}
	})
}

func TestAFileIsFoundSharedAndDeleted(t *testing.T) {
	each(t, false, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		b.Login("alice", password)
		b.Visit("files")
		b.Seen("files-empty")
		alice := s.As("alice")
		for i := range 8 {
			alice.Upload(fmt.Sprintf("file=report-%d-of-the-year-%s.pdf&m=bob%d@example.com", i, strings.Repeat("x", 9*i), i), "text")
		}
		s.Deliver()
		b.Visit("files")
		b.Seen("files")
		b.Fill("input[name=search]", "report-3")
		b.Press("#search button")
		b.WaitText("report-3")
		b.Press("tbody th a")
		b.WaitFor("aside.panel")
		b.Seen("file")
		b.Visit("files?search=nothing-like-this")
		b.Seen("files-nothing")
		b.Visit("files?id=3")
		b.Click("aside .danger summary")
		b.Click("aside .danger form button")
		b.WaitFor(".alert.good")
		b.Seen("files-deleted")
		alice.Ask("GET /files/3", "").Want(404)
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
		b.Click(".bulk .danger summary")
		b.Click(".bulk .danger button")
		b.Until("the chosen files are deleted", func() bool {
			return alice.Ask("GET /files/8", "").Code == 404 && alice.Ask("GET /files/7", "").Code == 404
		})
	})
}

func TestARequestIsMadeWatchedAndEnded(t *testing.T) {
	each(t, false, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		b.Login("alice", password)
		b.Visit("requests")
		b.Seen("requests-empty")
		b.Press("main a.primary")
		b.Fill("#title", "Invoices <i>of</i> May")
		b.Seen("request-new")
		b.Click("#request button.primary")
		b.WaitFor("#link")
		b.Seen("request-made")
		link := b.Text("document.querySelector('#link').value")
		s.Send("POST "+link+"&file=may.pdf&by=Bob", "content", "Content-Type", "application/pdf").Want(200)
		b.Visit("requests")
		b.WaitText("Invoices <i>of</i> May")
		b.Click("details.fold summary")
		b.Seen("requests")
		b.WaitText("may.pdf")
		b.Click("details.danger summary")
		b.Click("details.danger form button")
		b.WaitFor(".alert.good")
		apitest.Equal(t, "status of an ended request", s.Send("POST "+link+"&file=june.pdf", "content").Code, 401)
	})
}
