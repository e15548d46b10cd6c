package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
	"ferry/shared/wire"
)

// TestAnUploadThatBeganElsewhereIsResumed also chooses another file of that name and size first.
func TestAnUploadThatBeganElsewhereIsResumed(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Desk())
	alice := s.As("alice")
	const size, partSize = 11 << 20, 5 << 20
	file, other := noise(t, "film.mp4", size), filepath.Join(t.TempDir(), "film.mp4")
	apitest.Must(t, os.Rename(noise(t, "other.mp4", size), other))
	content, err := os.ReadFile(file)
	apitest.Must(t, err)
	session := apitest.Read[struct{ ID string }](alice.Ask("POST /uploads",
		fmt.Sprintf(`{"name":"film.mp4","length":%d,"partSize":%d}`, size, partSize)).Want(201))
	path := "/uploads/" + session.ID
	part := apitest.Read[wire.SignedParts](alice.Ask("POST "+path+"/parts", `{"numbers":[1]}`).Want(200)).Parts[0]
	s.Send("PUT "+part.URL, string(content[:partSize])).Want(200)

	at(b, "files")
	b.Press(`a[href^="send#upload="]`)
	b.WaitText("Resume")
	b.Choose("#stage input[name=again]", other)
	b.WaitText("Choose the same files again")
	b.Seen("send-other", "#stage .alert")
	if got := alice.Ask("GET "+path, "").Want(200).Text; !strings.Contains(got, `"number":1`) {
		t.Errorf("what had arrived is gone: %s", got)
	}
	b.Choose("#stage input[name=again]", file)
	if got := s.Get(b.Link()); got != string(content) {
		t.Errorf("%d of %d bytes arrived, or others", len(got), size)
	}
	if open := alice.Ask("GET /uploads", "").Want(200).Text; strings.Contains(open, `"id"`) {
		t.Errorf("a session stays open: %s", open)
	}
	b.Visit("send#upload=" + session.ID)
	b.WaitText("This upload is no longer open")
}

// dropOf drops a file on the window; an expression says how its entry answers.
func dropOf(entry string) string {
	return `{
		const drop = new Event("drop", { cancelable: true });
		drop.dataTransfer = { types: ["Files"], items: [{ kind: "file", getAsFile: () => null, webkitGetAsEntry: () => ({ isFile: true, name: "x", file: ` + entry + ` }) }] };
		dispatchEvent(drop) || true;
	}`
}

func TestChoosingAndSendingLoseNothingInSilence(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Desk())
	s.InProcess("it slows the network of one machine")
	at(b, "send")
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
	t.Parallel()
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
