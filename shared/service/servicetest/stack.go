//go:build stack

package servicetest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
	"ferry/shared/endpoint"
	"ferry/shared/service"
	"ferry/shared/users"
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
	s, err := service.New(p, service.Options{From: "Ferry <ferry@localhost>"})
	if err != nil {
		t.Fatalf("making the service: %v", err)
	}
	clock := &Clock{fixed: skip}
	return &Server{
		TB: t, Base: d.Base, Root: strings.TrimSuffix(d.Base, endpoint.Prefix), Clock: clock, Data: &local.Data{Ports: p},
		Service: s, Users: users.NewStore(p.Table, clock.Now), Calls: &Calls{uncounted: skip}, Log: log, contract: c, close: func() {},
	}
}

func startStack(t testing.TB) (d boottest.Deployed) {
	t.Helper()
	stacks := os.Getenv("FERRY_TEST_STACKS")
	if stacks == "" {
		t.Skip("needs stacks: go run ./infra/awslocal -- go test -tags stack ./shared/endpoint/...")
	}
	resp, err := http.Post(stacks, "application/json", nil)
	if err != nil {
		t.Fatalf("starting a stack: %v", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("starting a stack: %s, %v", resp.Status, err)
	}
	t.Cleanup(func() {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, stacks+"/"+d.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	})
	return d
}
