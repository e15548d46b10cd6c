//go:build stack

package apitest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
)

// remote starts a stack of the template's functions and returns a Server that
// speaks to it. What only a service in this process can do skips the test:
// other settings, a clock that is moved, calls that are counted or fail.
func remote(t testing.TB, options int) *Server {
	t.Helper()
	if options > 0 {
		t.Skip("the stack has its own settings")
	}
	d := startStack(t)
	p, err := d.Ports(t.Context())
	if err != nil {
		t.Fatalf("opening the stack's data: %v", err)
	}
	c, err := readContract()
	if err != nil {
		t.Fatalf("reading the interface's description: %v", err)
	}
	skip := func(why string) { t.Helper(); t.Skip(why) }
	log := &Log{out: t.Output()}
	p.Log = slog.New(slog.NewTextHandler(log, nil))
	s, err := local.NewService(p, local.ServiceOptions{From: "Ferry <ferry@localhost>"})
	if err != nil {
		t.Fatalf("making the service: %v", err)
	}
	clock := &Clock{fixed: skip}
	return &Server{
		TB: t, Base: d.Base, Root: strings.TrimSuffix(d.Base, api.Prefix), Clock: clock, Data: &local.Data{Ports: p},
		Service: s, Users: auth.NewUsers(p.Table, clock.Now), Calls: &Calls{uncounted: skip}, Log: log, contract: c, close: func() {},
	}
}

func startStack(t testing.TB) (d boottest.Deployed) {
	t.Helper()
	stacks := os.Getenv("FERRY_TEST_STACKS")
	if stacks == "" {
		t.Skip("needs stacks: go run ./infra/awslocal -- go test -tags stack ./shared/api/...")
	}
	resp, err := http.Get(stacks)
	if err != nil {
		t.Fatalf("borrowing a stack: %v", err)
	}
	t.Cleanup(func() { resp.Body.Close() }) // which gives it back
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("borrowing a stack: %s, %v", resp.Status, err)
	}
	return d
}
