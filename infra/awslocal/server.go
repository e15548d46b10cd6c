package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	startTimeout = 10 * time.Minute // a cold Java on a busy machine is slow
	stopTimeout  = 5 * time.Second
)

// standIn is a server in place of AWS.
type standIn struct {
	name    string
	inputs  [][]byte // if they change, it is reinstalled
	install func(ctx context.Context, dir string) error
	// command runs what is installed in dir, on a port of the loopback address
	// and with its data in a folder.
	command func(ctx context.Context, dir, data string, port int) *exec.Cmd
}

// start runs a server until stop is called, and returns when it answers.
func (s standIn) start(
	ctx context.Context,
	dir, data string,
) (url string, stop func(), err error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	output, err := os.CreateTemp("", "ferry-"+s.name+"-")
	if err != nil {
		return "", nil, err
	}
	defer output.Close()
	defer os.Remove(output.Name()) // the server keeps writing to it
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cmd := s.command(life, dir, data, port)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = childAttr()
	cmd.Cancel, cmd.WaitDelay = func() error {
		return cmd.Process.Signal(syscall.SIGTERM)
	}, stopTimeout
	if err := cmd.Start(); err != nil {
		end()
		return "", nil, fmt.Errorf("starting %s: %w", s.name, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := ready(ctx, url, done); err != nil {
		end()
		<-done
		said, _ := io.ReadAll(io.NewSectionReader(output, 0, 16<<10)) // this only adds to the error
		return "", nil, fmt.Errorf("starting %s: %w\n%s", s.name, err, said)
	}
	progress("%s answers at %s", s.name, url)
	return url, func() { end(); <-done }, nil
}

// ready returns when a server answers a request, whatever the answer is.
func ready(ctx context.Context, url string, done chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			return resp.Body.Close()
		}
		select {
		case err := <-done:
			done <- err
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePort returns a port of the loopback address that nothing listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
