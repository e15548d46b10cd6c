package browser_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
)

func TestActionsSayWhatFailed(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Desk())
	alice := s.As("alice")
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		alice.Upload("file="+name, "text")
	}
	b.Login("alice", password)
	b.Visit("files?id=1")
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
	b.Click("aside .danger summary")
	b.Click("aside .danger form button")
	b.WaitFor("aside .danger form button[aria-busy=true]")
	b.WaitFor(".alert.bad[role=alert]")
	b.WaitText("the page could not be loaded again")
	alice.Ask("GET /files/1", "").Want(404)

	b.Visit("files")
	b.Click("tbody tr:nth-child(1) input[type=checkbox]")
	b.Click("tbody tr:nth-child(2) input[type=checkbox]")
	b.Offline(true)
	b.Click(".bulk .danger summary")
	b.Click(".bulk .danger button")
	b.WaitFor(".alert.bad[role=alert]")
	b.WaitText("2 failed: No connection")
	b.WaitText("files chosen")
	b.Offline(false)
	alice.Ask("GET /files/2", "").Want(200)
}

func TestFilesAreSortedByOneChoice(t *testing.T) {
	each(t, false, func(t *testing.T, v browsertest.View) {
		s, b := begin(t, v)
		for _, name := range []string{"first.txt", "second.txt"} {
			s.As("alice").Upload("file="+name, "text")
		}
		b.Login("alice", password)
		b.Visit("files")
		for order, want := range map[string]string{"old": "first.txt", "new": "second.txt"} {
			b.WaitFor("tbody .pick input") // the script is there
			b.Is(`{ const s = document.querySelector("select[name=sort]"); s.value = ` + browsertest.Quoted(order) + `; s.dispatchEvent(new Event("change", { bubbles: true })); true }`)
			if !apitest.Eventually(func() bool {
				return strings.HasSuffix(b.Address(), "sort="+order) && b.Text("document.querySelector('tbody th')?.innerText ?? ''") == want
			}) {
				t.Errorf("by %s the first is not %s", order, want)
			}
		}
		b.Seen("files-sorted")
	})
}
