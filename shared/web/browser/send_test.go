package browser_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
)

// noise writes a file of so many bytes that no two files share.
func noise(t testing.TB, name string, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err == nil {
		_, err = io.CopyN(f, rand.NewChaCha8(sha256.Sum256([]byte(name))), size)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func sumOf(t testing.TB, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func sumOfFile(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return sumOf(t, f)
}

func TestAFileIsSentByOneButton(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		b.Visit("send")
		b.Seen("send-anonymous")
		b.Login("alice", password)
		b.Visit("send")
		b.Seen("send")
		b.Pick(noise(t, "a picture of the harbour.jpg", 3<<20))
		b.Seen("send-one")
		b.Send()
		link := b.Link()
		b.Seen("sent")
		if got := s.Get(link); sumOf(t, strings.NewReader(got)) != sumOfFile(t, noise(t, "a picture of the harbour.jpg", 3<<20)) {
			t.Errorf("%d bytes arrived that are not those sent", len(got))
		}
		if name := s.As("alice").Newest("alice").Name; name != "a picture of the harbour.jpg" {
			t.Errorf("the file is called %q", name)
		}
		b.Click("details.reveal summary")
		b.WaitFor("img.qr")
		if !apitest.Eventually(func() bool { return b.Number("document.querySelector('img.qr').naturalWidth") > 0 }) {
			t.Error("there is no QR code")
		}
		b.Seen("sent-qr")
		b.Visit("files")
		b.WaitText("harbour.jpg")
	})
}

func TestFilesAreSentToPeopleWithOptions(t *testing.T) {
	each(t, false, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		b.Login("alice", password)
		b.Visit("send")
		b.Pick(noise(t, "plan.pdf", 1000))
		b.Click("input[value=message]")
		b.WaitFor("#to")
		b.Do("typing", browsertest.Typed("#to", "bob@example.com, carol@example.com;nobody "))
		b.Fill("#message", "the plan, as promised")
		b.Click("#stage details.fold summary")
		b.Fill("#downloads", "2")
		b.Fill("#lock", "open sesame")
		b.Seen("send-options")
		b.Send()
		b.WaitFor("#stage .error")
		b.Seen("send-wrong")
		b.Click(".chips li:nth-child(3) button")
		b.Send()
		b.Link()
		b.Seen("sent-to")
		if sent := s.Deliver(); sent != 2 {
			t.Errorf("%d mails went out, want 2", sent)
		}
		link := record(s).Links[1]
		if link.Downloads != 2 || !link.Protected || link.To != "bob@example.com" {
			t.Errorf("the link is %+v", link)
		}
	})
}

func TestAFolderOfFilesBecomesABundle(t *testing.T) {
	each(t, false, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		folder := t.TempDir()
		want := map[string]string{}
		for i := range 200 {
			name := fmt.Sprintf("tree/%d/%c \u00e9\u4e2d %03d.txt", i%7, 'a'+i%26, i)
			want[name] = strings.Repeat(name, i)
			path := filepath.Join(folder, filepath.FromSlash(name))
			apitest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			apitest.Must(t, os.WriteFile(path, []byte(want[name]), 0o644))
		}
		b.Login("alice", password)
		b.Visit("send")
		b.WaitFor("#start .drop")
		b.Choose("#start input[webkitdirectory]", filepath.Join(folder, "tree"))
		b.WaitText("200")
		b.Seen("send-many")
		b.Send()
		text := s.Get(b.Link())
		b.Seen("sent-bundle")
		archive, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
		apitest.Must(t, err)
		for _, f := range archive.File {
			r, err := f.Open()
			apitest.Must(t, err)
			content, err := io.ReadAll(r)
			apitest.Must(t, err)
			if string(content) != want[f.Name] {
				t.Errorf("%s has %d bytes", f.Name, len(content))
			}
			delete(want, f.Name)
		}
		if len(want) > 0 {
			t.Errorf("%d files are missing, such as %v", len(want), first(want))
		}
	})
}

func first(m map[string]string) string {
	for name := range m {
		return name
	}
	return ""
}

// narrow bounds how many bytes of parts a second the service takes, of all connections together; 0 is no bound.
func narrow(s *apitest.Server, rate int64) *atomic.Int64 {
	line, next := &atomic.Int64{}, s.HTTP.Config.Handler
	line.Store(rate)
	var turn sync.Mutex
	s.HTTP.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/parts/") {
			r.Body = slowBody{r.Body, func(n int) {
				turn.Lock()
				defer turn.Unlock()
				if rate := line.Load(); rate > 0 {
					time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
				}
			}}
		}
		next.ServeHTTP(w, r)
	})
	return line
}

type slowBody struct {
	io.ReadCloser
	wait func(n int)
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.wait(n)
	return n, err
}

// TestALargeFileGoesOnAfterTheNetworkAndTheTabAreLost sends 300 MB in the whole matrix, and less otherwise.
func TestALargeFileGoesOnAfterTheNetworkAndTheTabAreLost(t *testing.T) {
	t.Parallel()
	size := int64(160_000_000)
	if browsertest.All() {
		size = 300_000_000
	}
	s, b := begin(t, browsertest.Desk())
	s.InProcess("it cuts the network of one machine")
	file := noise(t, "film.mp4", size)
	b.Login("alice", password)
	b.Visit("send")
	line := narrow(s, 16_000_000)
	b.Pick(file)
	b.Send()
	b.WaitFor("#stage progress")
	progress := func() float64 { return b.Number("document.querySelector('#stage progress')?.value ?? 100") }
	reach := func(percent float64) {
		t.Helper()
		if !apitest.Eventually(func() bool { return progress() >= percent }) {
			t.Fatalf("at %v %%, want %v", progress(), percent)
		}
	}
	reach(10)
	b.Seen("sending")
	b.Expect("net::ERR_", "WebSocket")
	b.Offline(true)
	b.WaitText("No connection")
	b.Seen("send-offline")
	b.Offline(false)
	reach(30)
	b.Click("[data-do=pause]")
	b.Seen("send-paused")
	b.Click("[data-do=resume]")
	reach(40)
	b.Visit("login?next=send") // as if the tab were closed: another page ends the script
	b.Visit("send")
	b.WaitFor("#stage progress")
	b.Seen("send-unfinished")
	line.Store(0)
	b.Choose("#stage label.button.primary input[name=again], #start input[name=file]", file)
	link := b.Link()
	if got := s.Get(link); int64(len(got)) != size || sumOf(t, bytes.NewReader([]byte(got))) != sumOfFile(t, file) {
		t.Errorf("%d of %d bytes arrived, or others", len(got), size)
	}
	if files := s.As("alice").Ask("GET /download/list", "").Want(200).Files; len(files) != 1 {
		t.Errorf("%d files were stored", len(files))
	}
	if open := s.As("alice").Ask("GET /uploads", "").Want(200).Text; strings.Contains(open, `"id"`) {
		t.Errorf("a session stays open: %s", open)
	}
}

func TestAGuestSendsFilesToARequest(t *testing.T) {
	each(t, true, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		made := apitest.Read[struct{ LinkURL string }](s.As("alice").Ask("POST /requests",
			`{"title":"Photos of the trip","message":"All of them","files":5}`, "Content-Type", "application/json").Want(201))
		b.Visit(made.LinkURL)
		b.WaitText("Photos of the trip")
		b.Seen("guest")
		b.Pick(noise(t, "one.jpg", 2000))
		b.Fill("#by", "Bob")
		b.Seen("guest-chosen")
		b.Send()
		b.WaitAddress("sent=")
		b.Seen("guest-done")
		f := s.As("alice").Newest("alice")
		if f.Name != "one.jpg" || f.By.Called != "Bob" {
			t.Errorf("%s arrived from %q", f.Name, f.By.Called)
		}
		if strings.Contains(b.Words(), "download/file") {
			t.Error("the guest sees a link")
		}
		b.Visit(made.LinkURL)
		b.WaitText("one.jpg")
		b.Seen("guest-again")
	})
}
