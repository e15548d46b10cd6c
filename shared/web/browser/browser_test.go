// Package browser_test drives the pages in a real browser, as people do. Each flow runs once where
// a browser is installed; with FERRY_PAGES=all, as `make test-pages` does, at the size of a phone
// and of a desk, in two languages, and without scripts where that is promised. Start reading with
// each, and with browsertest.Tab.
package browser_test

import (
	"os"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/web/browsertest"
)

const password = apitest.Password

func TestMain(m *testing.M) {
	code := m.Run()
	browsertest.End()
	os.Exit(code)
}

// each runs a flow once, or in the whole matrix. A flow that works without scripts is run so too.
func each(t *testing.T, scriptless bool, flow func(t *testing.T, v browsertest.View)) {
	t.Parallel()
	browsertest.Need(t)
	desk, phone := browsertest.Desk(), browsertest.Phone()
	views := []browsertest.View{desk}
	if browsertest.All() {
		views = []browsertest.View{desk, phone, desk.In("de"), phone.In("it")}
	}
	if scriptless {
		views = append(views, phone.WithoutScript())
	}
	for _, v := range views {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			flow(t, v)
		})
	}
}

// begin starts a service with the user alice, and opens a window on it.
func begin(t *testing.T, v browsertest.View) (*apitest.Server, *browsertest.Tab) {
	t.Helper()
	browsertest.Need(t)
	s := apitest.New(t)
	s.AddUser("alice", password)
	return s, browsertest.Open(t, s.Root, v)
}
