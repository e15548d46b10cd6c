package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/web/browsertest"
)

// TestUppyUploadsInASession runs the lines of the page about clients on a page of another origin. The file has
// three parts, the last of which is shorter.
func TestUppyUploadsInASession(t *testing.T) {
	const program = "../../../.tmp/clients/node_modules/uppy/dist/uppy.min.mjs"
	if _, err := os.Stat(program); err != nil {
		t.Skip("uppy is not installed: make clients")
	}
	text, err := os.ReadFile("../../api/CLIENTS.md")
	expect.NoErr(t, err)
	lines := regexp.MustCompile("(?s)<!-- A test runs this in a browser. -->\n```js\n(.*?)```").
		FindStringSubmatch(string(text))[1]
	page := http.NewServeMux()
	other := httptest.NewServer(page)
	t.Cleanup(other.Close)
	s, b := begin(t, browsertest.Desk(), func(_ *service.Settings, so *local.ServiceOptions) {
		so.Origins = []string{other.URL}
	})
	token := apitest.Read[struct{ Token string }](s.As("alice").
		Ask("POST /tokens", `{"name":"Uppy","scope":"upload"}`).
		Want(201)).Token
	page.HandleFunc("/uppy.mjs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		http.ServeFile(w, r, program)
	})
	page.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(
			w,
			`<!doctype html><link rel="icon" href="data:,"><p></p><script type="module">import { AwsS3, Uppy } from "./uppy.mjs";
			%s
			const said = document.querySelector("p");
			uppy.on("complete", ({ successful, failed }) => (said.textContent = successful[0] ? "sent: " + successful[0].uploadURL : "failed: " + failed[0].error));
			uppy.addFile({ name: "a film.mp4", type: "video/mp4", data: new Blob(["Hello, Ferry".repeat(1_000_000)]) });
			uppy.upload();</script>`,
			strings.NewReplacer("http://127.0.0.1:8080/v1", s.Base, "TOKEN", token).Replace(lines),
		)
	})
	b.Visit(other.URL + "/")
	b.WaitText(": ")
	_, link, _ := strings.Cut(b.Words(), "sent: ")
	if s.Get(link) != strings.Repeat("Hello, Ferry", 1_000_000) {
		t.Errorf("%s gives other bytes", link)
	}
	expect.Equal(t, "its name", s.Newest("alice").Name, "a film.mp4")
}
