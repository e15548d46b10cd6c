package file_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

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
			s.Send(method+" "+path, "", browser...).Want(303).WantHeaders("Location", page)
		}
	}
	s.Send("GET "+link+"&download=1", "", browser...).Want(200).WantHeaders("Content-Type", "application/octet-stream")
	s.Ask("DELETE /files/1", "").Want(200)
	for _, query := range []string{"", "&download=1", "&claim=x"} { // the page says why the link is dead
		s.Send("GET "+link+query, "", browser...).
			Want(303).
			WantHeaders("Location", "../../l?k="+k+"&lang=en", "WWW-Authenticate", "")
	}
}

// TestActiveContentIsSentAsAnAttachment: the journey has the headers of any file.
func TestActiveContentIsSentAsAnAttachment(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("page.html", "<script>alert(1)</script>", "Content-Type", "text/html")
	for _, link := range []string{link, link + "&download=1"} {
		s.Send("GET "+link, "").WantHeaders("Content-Type", "text/html", "X-Content-Type-Options", "nosniff",
			"Content-Security-Policy", "sandbox; default-src 'none'", "Content-Disposition", wire.Attachment("page.html"))
		for _, to := range []string{"script", "worker", "sharedworker", "serviceworker", "style", "xslt"} {
			s.Send("GET "+link, "", "Sec-Fetch-Dest", to).Want(403, "as its script")
		}
	}
}

func TestProgramCanAskForTheEnvelope(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "22")
	expect.Equal(t, "the link", s.Send("GET "+link, "", "Accept", "application/json").Want(200).File().LinkURL, link)
	for _, accept := range []string{
		"",
		"text/plain",
		"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
		"application/json, text/plain, */*",
	} {
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
	cmd := exec.CommandContext(s.Context(), path, append([]string{
		"-sS", "--fail", "--noproxy", "*", "--max-time", "20",
	}, args...)...)
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
