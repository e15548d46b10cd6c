// Package browser_test drives the pages in a real browser, as people do. Each flow runs once where
// a browser is installed; with FERRY_PAGES=all, as `make test-pages` does, at the size of a phone
// and of a desk, in three languages, without scripts where that is promised, and in each state.
// Start reading with each, and with browsertest.Tab.
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

// each runs a flow once, or in the whole matrix, which has a view without scripts if the flow works so.
func each(t *testing.T, scriptless bool, flow func(t *testing.T, s *apitest.Server, b *browsertest.Tab)) {
	t.Parallel()
	browsertest.Need(t)
	desk, phone := browsertest.Desk(), browsertest.Phone()
	views := []browsertest.View{desk}
	if browsertest.All() {
		views = []browsertest.View{desk, phone, desk.In("de"), phone.In("it")}
		if scriptless {
			views = append(views, phone.WithoutScript())
		}
	}
	for _, v := range views {
		t.Run(v.String(), func(t *testing.T) {
			s, b := begin(t, v)
			flow(t, s, b)
		})
	}
}

// begin starts a service with the user alice in a test that runs beside others, and opens a window on it.
func begin(t *testing.T, v browsertest.View, options ...apitest.Option) (*apitest.Server, *browsertest.Tab) {
	t.Helper()
	t.Parallel()
	browsertest.Need(t)
	s := apitest.New(t, options...)
	s.AddUser("alice", password)
	return s, browsertest.Open(t, s.Root, v)
}

// at opens a page as alice, who has logged in before.
func at(s *apitest.Server, b *browsertest.Tab, page string) {
	b.Helper()
	b.SetCookie("ferry", s.Login("alice", password))
	b.Visit(page)
}
