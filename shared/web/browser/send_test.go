package browser_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/web/browsertest"
	"ferry/shared/wire"
)

// noise writes a file of so many bytes that no two files share.
func noise(t testing.TB, name string, size int64) string {
	t.Helper()
	path, content := filepath.Join(t.TempDir(), name), make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name))).Read(content)
	expect.NoErr(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestAFileIsSentByOneButton(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		b.Visit("send")
		b.Seen("send-anonymous")
		b.Login("alice", password)
		b.Visit("send")
		b.Seen("send")
		file := noise(t, "a picture of the harbour.jpg", 3<<20)
		b.Pick(file)
		b.Seen("send-one")
		b.Send()
		link := b.Link()
		b.Seen("sent")
		want, err := os.ReadFile(file)
		expect.NoErr(t, err)
		expect.Equal(t, "whether what arrived is what was sent", s.Get(link) == string(want), true)
		expect.Equal(t, "the name", s.As("alice").Newest("alice").Name, "a picture of the harbour.jpg")
		b.Click("details.reveal summary")
		b.Until("there is a QR code", func() bool {
			return b.Number("document.querySelector('img.qr')?.naturalWidth ?? 0") > 0
		})
		b.Seen("sent-qr")
		b.Visit("files")
		b.WaitText("bour.jpg")
	})
}

func TestFilesAreSentToPeopleWithOptions(t *testing.T) {
	each(t, false, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		at(s, b, "send")
		b.Pick(noise(t, "plan.pdf", 1000))
		b.Click("input[value=message]")
		b.WaitFor("#to")
		b.Do("typing", browsertest.Typed("#to", "bob@example.com, carol@example.com;nobody "))
		b.Fill("#message", "the plan, as promised")
		b.Click("#stage details.fold summary")
		b.Fill("#downloads", "2", "#lock", "open sesame")
		b.Seen("send-options")
		b.Send()
		b.Seen("send-wrong", "#stage .error")
		b.Click(".chips li:nth-child(3) button")
		b.Send()
		b.Link()
		b.Seen("sent-to")
		expect.Equal(t, "mails", s.Deliver(), 2)
		link := record(s).Links[1]
		if link.Downloads != 2 || !link.Protected || link.To != "bob@example.com" {
			t.Errorf("the link is %+v", link)
		}
	})
}

func TestAFolderOfFilesBecomesABundle(t *testing.T) {
	each(t, false, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		folder, want := t.TempDir(), map[string]string{}
		for i := range 200 {
			name := fmt.Sprintf("tree/%d/%c \u00e9\u4e2d %03d.txt", i%7, 'a'+i%26, i)
			want[name] = strings.Repeat(name, i)
			expect.NoErr(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755))
			expect.NoErr(t, os.WriteFile(filepath.Join(folder, name), []byte(want[name]), 0o644))
		}
		at(s, b, "send")
		b.WaitFor("#start .drop")
		b.Choose("#start input[webkitdirectory]", filepath.Join(folder, "tree"))
		b.WaitText("200")
		b.Seen("send-many")
		b.Send()
		text := s.Get(b.Link())
		b.Seen("sent-bundle")
		archive, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
		expect.NoErr(t, err)
		expect.Equal(t, "entries", len(archive.File), len(want))
		expect.Equal(t, "whether the bundle has the files", maps.Equal(filesIn(t, archive), want), true)
	})
}

// filesIn returns all files with what they have.
func filesIn(t *testing.T, from fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	expect.NoErr(t, fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		all[name] = string(content)
		return err
	}))
	return all
}

// uploads returns alice's upload sessions, and how many bytes of them have arrived.
func uploads(s *apitest.Server) (sessions int, size int64) {
	s.Helper()
	alice := s.As("alice")
	all := apitest.Read[struct{ Uploads []struct{ ID string } }](alice.Ask("GET /uploads", "").Want(200))
	for _, u := range all.Uploads {
		session := alice.Ask("GET /uploads/"+u.ID, "").Want(200)
		for _, part := range apitest.Read[struct{ Arrived []wire.Arrived }](session).Arrived {
			size += part.Size
		}
	}
	return len(all.Uploads), size
}

// keep lets the browser read what was dropped again after the tab has gone: another tab has the handles too.
// Without, the browser would ask somebody, which it cannot without a screen.
func keep(t *testing.T, b *browsertest.Tab) {
	t.Helper()
	tab, _ := chromedp.NewContext(b.Context)
	expect.NoErr(t, chromedp.Do(tab, chromedp.Navigate(b.Root+"login")))
	_, err := chromedp.Run(tab, chromedp.Evaluate[bool](`new Promise(done => indexedDB.open("ferry").onsuccess = e =>
		e.target.result.transaction("uploads").objectStore("uploads").getAll().onsuccess = e =>
			done(Boolean(window.kept = e.target.result)))`, chromedp.EvalAwaitPromise))
	expect.NoErr(t, err)
}

// TestALargeFileGoesOnAfterTheNetworkAndTheTabAreLost sends 300 MB once in the whole matrix, and less otherwise.
// At a desk the file is dropped and goes on by one click; a phone has it chosen again.
func TestALargeFileGoesOnAfterTheNetworkAndTheTabAreLost(t *testing.T) {
	each(t, false, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		s.InProcess("it cuts the network of one machine")
		size := int64(140_000_000)
		if browsertest.All() && b.View == browsertest.Desk() {
			size = 300_000_000
		}
		file := noise(t, "film.mp4", size)
		at(s, b, "send")
		line := browsertest.Narrow(&s.HTTP.Config.Handler, size/40) // slow while the test does something, as other tests take the processors
		choose, again := b.Drop, func() { b.Click("#stage [data-do=resume]") }
		if b.Width < 600 {
			choose, again = b.Pick, func() { b.Choose("#stage label.button.primary input[name=again]", file) }
		}
		choose(file)
		b.Send()
		b.WaitFor("#stage progress")
		percent := func() float64 { return b.Number("document.querySelector('#stage progress').value") }
		b.Until("some is sent", func() bool { return percent() > 5 })
		b.Seen("sending")
		b.Expect("net::ERR_", "WebSocket")
		b.Offline(true)
		line.Rate.Store(0) // the browser cuts no connection that it has: these parts are to end soon
		b.Seen("send-offline", "#stage .warn")
		line.Rate.Store(size / 40)
		b.Offline(false)
		b.Until("it goes on", func() bool { return b.Is("!document.querySelector('#stage .warn:not([hidden])')") })
		b.Click("[data-do=pause]")
		b.Seen("send-paused", "[data-do=resume]")
		keep(t, b)
		line.Rate.Store(size / 6)
		b.Click("[data-do=resume]")
		b.Until("a part arrives", func() bool { _, size := uploads(s); return size > 0 })
		line.Rate.Store(size / 40)
		b.Reopen()
		b.Visit("files")
		b.Until("the tab is gone", func() bool {
			return b.Is("navigator.locks.query().then(({held}) => !held.length)")
		})
		b.Visit("send")
		b.WaitFor("#stage progress")
		line.Rate.Store(0)
		b.Until("the lost tab sends nothing", func() bool { return line.Open.Load() == 0 })
		_, kept := uploads(s)
		line.Taken.Store(0)
		b.Seen("send-unfinished")
		again()
		link, folder := b.Link(), b.Downloads()
		if taken := line.Taken.Load(); kept == 0 || kept == size || taken != size-kept {
			t.Errorf("%d of %d bytes had arrived, and %d were sent then", kept, size, taken)
		}
		b.Visit(link)
		b.Click("a.primary")
		content, err := os.ReadFile(file)
		expect.NoErr(t, err)
		expect.Equal(t, "whether the film is saved", bytes.Equal(b.Saved(folder, "film.mp4"), content), true)
		expect.Equal(t, "files", len(s.As("alice").Ask("GET /download/list", "").Want(200).Files), 1)
		sessions, _ := uploads(s)
		expect.Equal(t, "open sessions", sessions, 0)
	})
}

func TestAGuestSendsFilesToARequest(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		made := apitest.Read[struct{ LinkURL string }](s.As("alice").Ask("POST /requests",
			`{"title":"Photos of the trip","message":"All of them","files":5}`, "Content-Type", "application/json").
			Want(201))
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

// TestAnUploadThatBeganElsewhereIsResumed also chooses another file of that name and size first.
func TestAnUploadThatBeganElsewhereIsResumed(t *testing.T) {
	s, b := begin(t, browsertest.Desk())
	alice := s.As("alice")
	const size, partSize = 11 << 20, 5 << 20
	file, other := noise(t, "film.mp4", size), filepath.Join(t.TempDir(), "film.mp4")
	expect.NoErr(t, os.Rename(noise(t, "other.mp4", size), other))
	content, err := os.ReadFile(file)
	expect.NoErr(t, err)
	session := apitest.Read[struct{ ID string }](alice.Ask("POST /uploads",
		fmt.Sprintf(`{"name":"film.mp4","length":%d,"partSize":%d}`, size, partSize)).Want(201))
	path := "/uploads/" + session.ID
	part := apitest.Read[wire.SignedParts](alice.Ask("POST "+path+"/parts", `{"numbers":[1]}`).Want(200)).Parts[0]
	s.Send("PUT "+part.URL, string(content[:partSize])).Want(200)

	at(s, b, "files")
	b.Press(`a[href^="send#upload="]`)
	b.WaitText("Resume")
	b.Choose("#stage input[name=again]", other)
	b.WaitText("Choose the same files again")
	b.Seen("send-other", "#stage .alert")
	if got := alice.Ask("GET "+path, "").Want(200).Text; !strings.Contains(got, `"number":1`) {
		t.Errorf("what had arrived is gone: %s", got)
	}
	b.Choose("#stage input[name=again]", file)
	expect.Equal(t, "whether what arrived is what was sent", s.Get(b.Link()) == string(content), true)
	sessions, _ := uploads(s)
	expect.Equal(t, "open sessions", sessions, 0)
	b.Visit("send#upload=" + session.ID)
	b.WaitText("This upload is no longer open")
}

// dropOf drops a file on the window; an expression says how its entry answers.
func dropOf(entry string) string {
	return `{
		const drop = new Event("drop", { cancelable: true });
		drop.dataTransfer = { types: ["Files"], items: [{ kind: "file", getAsFile: () => null, webkitGetAsEntry: () => ({ isFile: true, name: "x", file: ` +
		entry +
		` }) }] };
		dispatchEvent(drop) || true;
	}`
}

func TestChoosingAndSendingLoseNothingInSilence(t *testing.T) {
	s, b := begin(t, browsertest.Desk())
	s.InProcess("it slows the network of one machine")
	at(s, b, "send")
	b.WaitFor("#start .drop")
	unreadable := dropOf("(take, fail) => fail(new Error())")
	b.Is(unreadable)
	b.Seen("send-unreadable", "#start .alert[role=alert]")
	b.Pick(noise(t, "a.bin", 3<<20), noise(t, "b.bin", 3<<20), noise(t, "c.bin", 3<<20))
	b.Is("document.querySelectorAll('.rows > li')[1].kept = true")
	b.Click(".rows > li button")
	if !b.Is("document.activeElement === document.querySelector('.rows > li button') && document.querySelector('.rows > li').kept") {
		t.Error("the focus is lost with the row, or the other rows are made anew")
	}
	b.Is(unreadable)
	b.WaitFor("#stage .alert[role=alert]")

	line := browsertest.Narrow(&s.HTTP.Config.Handler, 1_000_000)
	b.Send()
	b.WaitFor("#stage progress")
	b.Is(unreadable)
	b.WaitText("You can add more once this is sent")
	alice := s.As("alice")
	open := apitest.Read[struct{ Uploads []struct{ ID string } }](alice.Ask("GET /uploads", "").Want(200)).Uploads
	alice.Ask("DELETE /uploads/"+open[0].ID, "").Want(204)
	line.Rate.Store(0)
	b.WaitText("The upload has ended")
	b.Seen("send-ended")
	b.Click("[data-do=retry]")
	b.Link()
	if f := alice.Newest("alice"); f.Length < 6<<20 {
		t.Errorf("%s has %d bytes", f.Name, f.Length)
	}
}

func TestAGuestWhoseRequestEndedIsNotAskedWhetherToLeave(t *testing.T) {
	s, b := begin(t, browsertest.Desk())
	made := apitest.Read[struct{ LinkURL string }](s.As("alice").Ask("POST /requests", `{"title":"Photos"}`).Want(201))
	b.Visit(made.LinkURL)
	b.Pick(noise(t, "one.jpg", 2000))
	b.Is(`{
		addEventListener("beforeunload", (event) => sessionStorage.setItem("asks", event.defaultPrevented));
		const real = fetch;
		window.fetch = (to, how) => String(to).endsWith("v1/uploads") ? new Response("", { status: 401 }) : real(to, how);
		true
	}`)
	b.Send()
	b.WaitFor("#start .drop")
	if got := b.Text(`sessionStorage.getItem("asks") ?? ""`); got != "false" {
		t.Errorf("the page asks: %q", got)
	}
}
