package browser_test

import (
	"testing"

	"ferry/shared/web/browsertest"
)

func TestActionsSayWhatFailed(t *testing.T) {
	t.Parallel()
	s, b := begin(t, browsertest.Desk())
	alice := s.As("alice")
	for range 3 {
		alice.Upload("file=a.txt", "text")
	}
	at(b, "files?id=1")
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
