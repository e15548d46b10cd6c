package file_test

import (
	"mime"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// oddNames returns names that uploaders may choose, good and bad.
func oddNames() []string {
	return []string{
		"report.pdf", "two  words.txt", "🎉 fête.txt", "写真.jpg", "صورة.png", `the "best" one's.txt`, "100%.txt", "a%22b%0d%0a.txt", "a;b=c,d.txt",
		"<script>alert(1)<script>.html", `"><img src=x onerror=alert(1)>`, "a' onmouseover='x", "{href}{until}.txt", "*?:|.txt", ".hidden", "CON", strings.Repeat("é", 120) + ".txt",
		"filename=evil.exe", "a+b.txt", "utf-8''x", "\\\".txt", "~", "&amp;.txt", "javascript:alert(1)",
	}
}

func TestDownloadKeepsItsName(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for _, name := range oddNames() {
		name := strings.TrimPrefix(name, `\`)
		header := s.Send("GET "+s.share(name, "x"), "").Header.Get("Content-Disposition")
		kind, params, err := mime.ParseMediaType(header)
		if err != nil || kind != "attachment" || params["filename"] != name {
			t.Errorf("%q is sent as %s %q (%v)", name, kind, params["filename"], err)
		}
		// Old clients ignore filename* and use the name in the quotes.
		_, rest, _ := strings.Cut(header, `filename="`)
		plain, rest, _ := strings.Cut(rest, `"`)
		if plain == "" || strings.ContainsAny(plain, `/\%:*?<>|`) || strings.Trim(plain, ". ") == "" || !strings.HasPrefix(rest, "; filename*=UTF-8''") {
			t.Errorf("%q is %q to old clients", name, header)
		}
	}
}

// TestABrowserIsLedToTheLinksPage: the address is relative, as only the browser knows what comes
// before it, and of the link's query it has what leads to the page.
func TestABrowserIsLedToTheLinksPage(t *testing.T) {
	t.Parallel()
	s := begin(t)
	browser := []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Mode", "navigate"}
	link := s.share("a.txt", "content")
	_, k, _ := strings.Cut(link, "k=")
	s.share("b.txt", "deleted")
	_, z, _ := strings.Cut(s.backUp("2"), "z=")
	for path, page := range map[string]string{
		"/download/file?lang=it&k=" + k: "../../l?k=" + k + "&lang=it", "/download/file/backup?z=" + z: "../../../l?z=" + z,
		"/download/file?k=%3Cb%3E%26x&n=1": "../../l?k=%3Cb%3E%26x", "/download/file": "../../l?k=",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			a := s.Send(method+" "+path, "", browser...).Want(303)
			a.WantHeaders("Location", page, "Cache-Control", "no-store", "Referrer-Policy", "same-origin", "Vary", "Accept, Sec-Fetch-Mode, User-Agent")
		}
	}
	s.Send("GET "+link+"&download=1", "", browser...).Want(200).WantHeaders("Content-Type", "application/octet-stream")
	s.Ask("DELETE /files/1", "").Want(200)
	for _, query := range []string{"", "&download=1", "&claim=x"} { // the page says why the link is dead
		s.Send("GET "+link+query, "", browser...).Want(303).WantHeaders("Location", "../../l?k="+k+"&lang=en", "WWW-Authenticate", "")
	}
}

func TestActiveContentIsSentAsAnAttachment(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for _, kind := range []string{"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/pdf", "text/javascript"} {
		link := s.share("page.html", "<script>alert(1)</script>", "Content-Type", kind)
		for _, link := range []string{link, link + "&download=1"} {
			s.Send("GET "+link, "").WantHeaders("Content-Type", kind, "X-Content-Type-Options", "nosniff",
				"Content-Security-Policy", "sandbox; default-src 'none'", "Content-Disposition", "attachment; filename=\"page.html\"; filename*=UTF-8''page.html")
			s.Send("GET "+link, "", "Sec-Fetch-Dest", "script").Want(403, "as its script")
		}
	}
}

func TestFileKeepsItsMediaType(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for stated, sent := range map[string]string{
		"image/png": "image/png", "": "application/octet-stream", "application/x-www-form-urlencoded": "application/octet-stream",
		"TEXT/Plain": "text/plain", "text/" + strings.Repeat("x", 200): "application/octet-stream",
	} {
		s.Send("GET "+s.share("a", "x", "Content-Type", stated), "").WantHeaders("Content-Type", sent)
	}
}

func TestProgramCanAskForTheEnvelope(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("other.txt", "1")
	link := s.share("a.txt", "22")
	for _, accept := range []string{"application/json", "application/json, text/html;q=0.9", "text/plain;q=0.5,application/json"} {
		e := s.Send("GET "+link, "", "Accept", accept).Want(200).WantHeaders("Vary", "Accept, Sec-Fetch-Mode, User-Agent")
		f := e.File()
		f.Modified = 0
		expect.Equal(t, accept, f, apitest.File{ID: 2, Name: "a.txt", Length: 2, LinkURL: link})
		expect.Equal(t, accept, e.Description+e.User, "handlerDownloadList:succsessfullyann")
	}
	for _, accept := range []string{"", "text/plain", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "application/json, text/plain, */*"} {
		expect.Equal(t, accept, s.Send("GET "+link, "", "Accept", accept).Text, "22")
	}
}

// curl runs the real program in a folder.
func (s sharer) curl(dir string, args ...string) {
	s.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		s.Skip("curl is not installed")
	}
	cmd := exec.CommandContext(s.Context(), path, append([]string{"-sS", "--fail", "--noproxy", "*", "--max-time", "20"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("curl: %v: %s", err, out)
	}
}

func TestCurlSavesUsableNames(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for name, saved := range map[string]string{
		"report.pdf": "report.pdf", "two  words.txt": "two  words.txt", "fête.txt": "fete.txt", `the "best".txt`: "the _best_.txt",
		"a%2F..%2Fb.txt": "a_2F.._2Fb.txt", "🎉.txt": "_.txt", "写真": "file", ".bashrc": ".bashrc", "-o evil": "-o evil", "a;b.txt": "a_b.txt",
	} {
		dir := filepath.Join(t.TempDir(), "in")
		expect.NoErr(t, os.Mkdir(dir, 0o700))
		s.curl(dir, "-OJ", s.share(name, "content of "+name))
		inside, _ := os.ReadDir(dir)
		if beside, _ := os.ReadDir(filepath.Dir(dir)); len(inside) != 1 || len(beside) != 1 {
			t.Errorf("%q is saved as %v, beside %v", name, inside, beside)
		}
		got, err := os.ReadFile(filepath.Join(dir, saved))
		if err != nil || string(got) != "content of "+name {
			t.Errorf("%q has the content %q (%v)", name, got, err)
		}
	}
}
