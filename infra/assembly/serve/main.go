// Command serve runs the stack of template.yaml on this machine: the real
// programs of its functions behind an API, with stand-ins for AWS beneath.
//
//	go run ./infra/awslocal -- go run ./infra/assembly/serve
//	go run ./infra/awslocal -- go run ./infra/assembly/serve -- go test -tags stack ./shared/api/...
//
// The first form prints the address of one stack, in which the user demo has
// the password "demo password", and stays until Ctrl-C. The second gives the
// command an address in FERRY_TEST_STACKS at which each POST makes a stack with
// an empty table, and DELETE ends it.
//
// With -deployed, each stack is deployed to an emulator of all of AWS, where
// its stream, topics, queues and schedule work too and its roles are enforced;
// see infra/cloud. Without, the functions run by themselves on DynamoDB Local
// and a real S3 server, which are nearer to AWS's, and faster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"ferry/infra/assembly"
	"ferry/infra/cloud"

	"ferry/shared/auth"
)

func main() {
	deployed := flag.Bool("deployed", false, "deploy each stack to an emulator of all of AWS")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, *deployed, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, deployed bool, args []string) (int, error) {
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
	log := io.Discard // there are many stacks at once
	if len(args) == 0 {
		log = os.Stderr
	}
	s := &stacks{all: map[string]stack{}, start: func(ctx context.Context, name string) (stack, error) {
		return assembly.Start(ctx, assembly.LocalConfig{Root: ".", Programs: programs, Name: name, Log: log})
	}}
	if deployed {
		c, err := cloud.Open(ctx, ".", programs)
		if err != nil {
			return 1, err
		}
		var parameters map[string]string
		if len(args) == 0 { // a person's, who wants to see what is sent
			const sender = "ferry@example.com"
			if err := c.Verify(ctx, sender); err != nil {
				return 1, err
			}
			parameters = map[string]string{"SenderAddress": sender, "SmsSending": "on"}
			fmt.Printf("mail will be shown at %s/_ministack/ses/messages, text messages at %s/_ministack/sns/sms-messages\n", c.Address, c.Address)
		}
		s.start = func(ctx context.Context, name string) (stack, error) { return c.Deploy(ctx, name, parameters) }
	}
	defer s.close()
	if len(args) == 0 {
		return 0, s.one(ctx)
	}
	return s.command(ctx, args)
}

// one runs a stack until the context ends.
func (s *stacks) one(ctx context.Context) error {
	d, err := s.add(ctx, "ferry")
	if err != nil {
		return err
	}
	p, err := d.Ports(ctx)
	if err != nil {
		return err
	}
	const password = "demo password"
	hash, err := p.Hasher.Hash(ctx, password)
	if err == nil {
		err = auth.NewUsers(p.Table, p.Now).Add(ctx, auth.User{Name: "demo", Password: hash, State: auth.Active, Email: "demo@example.com"})
	}
	if err != nil {
		return fmt.Errorf("making the user demo: %w", err)
	}
	fmt.Printf("the stack answers at %s; its user is demo, with the password %q; Ctrl-C ends it\n", d.Base, password)
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
