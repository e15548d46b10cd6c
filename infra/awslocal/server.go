package main

import (
	"context"
	"errors"
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
	startTimeout = 60 * time.Second // a cold Java on a busy machine takes its time
	stopTimeout  = 5 * time.Second
)

// server is a stand-in that runs as a child of this process.
type server struct {
	url  string
	cmd  *exec.Cmd
	done chan error // gets the result of Wait once
}

// start runs a server, which command makes for a port of the loopback address
// that nobody listens on, and returns when it answers.
func start(ctx context.Context, name string, command func(port int) *exec.Cmd) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	output, err := os.CreateTemp("", "ferry-"+name+"-")
	if err != nil {
		return nil, err
	}
	defer output.Close()
	defer os.Remove(output.Name()) // the server goes on writing to it
	cmd := command(port)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	s := &server{url: fmt.Sprintf("http://127.0.0.1:%d", port), cmd: cmd, done: make(chan error, 1)}
	go func() { s.done <- cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		s.stop()
		said, _ := io.ReadAll(io.NewSectionReader(output, 0, 16<<10)) // the error says enough without
		return nil, fmt.Errorf("starting %s: %w\n%s", name, err, said)
	}
	progress("%s answers at %s", name, s.url)
	return s, nil
}

// ready returns when the server answers a request, no matter how.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if answers(ctx, s.url) {
			return nil
		}
		select {
		case err := <-s.done:
			s.done <- err
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return errors.Join(errors.New("it does not answer"), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

// stop ends the server, by force if it takes long.
func (s *server) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		s.cmd.Process.Kill()
		<-s.done
	}
}

// freePort returns a port of the loopback address that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
