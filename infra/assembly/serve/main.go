// Command serve runs the stack of template.yaml on this machine: the real
// programs of its functions behind an API, with stand-ins for AWS beneath.
//
//	go run ./infra/awslocal -- go run ./infra/assembly/serve
//	go run ./infra/awslocal -- go run ./infra/assembly/serve -- go test -tags stack ./shared/endpoint/...
//
// The first form prints the address of one stack, in which the user demo has
// the password "demo password", and stays until Ctrl-C. The second gives the
// command an address in FERRY_TEST_STACKS at which each POST makes a stack with
// an empty table, and DELETE ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"ferry/infra/assembly"
	"ferry/shared/users"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") == "" {
		return 1, errors.New("there are no stand-ins for AWS: go run ./infra/awslocal -- go run ./infra/assembly/serve")
	}
	programs, err := os.MkdirTemp("", "ferry-programs-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs)
	fmt.Fprintln(os.Stderr, "serve: building the functions ...")
	if err := assembly.Build(ctx, ".", programs); err != nil {
		return 1, err
	}
	stacks := &stacks{programs: programs, all: map[string]*assembly.Local{}}
	defer stacks.close()
	if len(args) == 0 {
		return 0, stacks.one(ctx)
	}
	return stacks.command(ctx, args)
}

// one runs a stack until the context ends.
func (s *stacks) one(ctx context.Context) error {
	it, err := assembly.Start(ctx, assembly.LocalConfig{Root: ".", Programs: s.programs, Name: "ferry", Log: os.Stderr})
	if err != nil {
		return err
	}
	s.add(it)
	p, err := it.Ports(ctx)
	if err != nil {
		return err
	}
	const password = "demo password"
	hash, err := p.Hasher.Hash(ctx, password)
	if err == nil {
		err = users.NewStore(p.Table, p.Now).Add(ctx, users.User{Name: "demo", Password: hash, State: users.Active, Email: "demo@example.com"})
	}
	if err != nil {
		return fmt.Errorf("making the user demo: %w", err)
	}
	fmt.Printf("the stack answers at %s; its user is demo, with the password %q; Ctrl-C ends it\n", it.Base, password)
	<-ctx.Done()
	return nil
}

// command runs args beside a server that makes stacks.
func (s *stacks) command(ctx context.Context, args []string) (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1, err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l) // until Close
	defer server.Close()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), "FERRY_TEST_STACKS=http://"+l.Addr().String())
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	err = c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running %s: %w", args[0], err)
	}
	return 0, nil
}
