//go:build stack

package apitest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// remote returns a Server that speaks to a deployed stack. A test is skipped if it
// needs a service in this process: to change settings, move the clock, or count
// calls or make them fail.
func remote(t testing.TB, options int) *Server {
	t.Helper()
	if options > 0 {
		t.Skip("the stack has its own settings")
	}
	d := borrowStack(t)
	log := &Log{out: t.Output()}
	p, err := d.Service(t.Context(), slog.New(slog.NewTextHandler(log, nil)))
	check(t, "opening the stack's data", err)
	skip := func(why string) { t.Helper(); t.Skip(why) }
	s, err := local.NewService(
		p.Ports,
		p.Settings,
		local.ServiceOptions{From: "Ferry <ferry@localhost>"},
	)
	check(t, "making the service", err)
	clock := &Clock{needs: skip}
	return &Server{
		TB:       t,
		Base:     d.Base,
		Root:     strings.TrimSuffix(d.Base, wire.Prefix),
		Clock:    clock,
		Data:     &local.Data{Ports: p.Ports},
		Service:  s,
		Users:    &users.Service{Table: p.Table, Now: clock.Now},
		Calls:    &Calls{needs: skip},
		Log:      log,
		Close:    func() {},
		contract: described(t),
	}
}

// borrowStack borrows an empty deployed stack until the test ends.
func borrowStack(t testing.TB) (d boottest.Deployed) {
	t.Helper()
	stacks := os.Getenv("FERRY_TEST_STACKS")
	if stacks == "" {
		t.Skip("needs stacks: go run ./infra/awslocal -- go test -tags stack ./shared/api/...")
	}
	resp, err := http.Get(stacks)
	check(t, "borrowing a stack", err)
	t.Cleanup(func() { resp.Body.Close() }) // this gives the stack back
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil ||
		resp.StatusCode != http.StatusOK {
		t.Fatalf("borrowing a stack: %s, %v", resp.Status, err)
	}
	return d
}
