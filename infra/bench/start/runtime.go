package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// patience bounds the wait for a function's first poll.
const patience = 20 * time.Second

// runtimeAPI is Lambda as a function sees it: an address to poll for events, of
// which none ever comes.
type runtimeAPI struct {
	listener net.Listener
	polls    chan time.Time
}

func listen() (*runtimeAPI, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	api := &runtimeAPI{listener: l, polls: make(chan time.Time, 1)}
	go http.Serve(l, api) // until Close
	return api, nil
}

// Close ends the service.
func (a *runtimeAPI) Close() error { return a.listener.Close() }

func (a *runtimeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if !strings.HasSuffix(r.URL.Path, "/runtime/invocation/next") {
		http.NotFound(w, r)
		return
	}
	a.polls <- now
	<-r.Context().Done()
}

// start runs a function until its first poll, and tells how long that took.
func (a *runtimeAPI) start(ctx context.Context, path string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, path)
	c.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + a.listener.Addr().String(),
		"AWS_REGION=eu-south-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=session",
		"FERRY_TABLE=table", "FERRY_FILES_BUCKET=files", "FERRY_BACKUP_BUCKET=backup", "FERRY_KEY_PARAMETER=/ferry/link-key",
		"FERRY_NOTICES_TOPIC=arn:aws:sns:eu-south-1:123456789012:notices", "FERRY_EVENTS_TOPIC=arn:aws:sns:eu-south-1:123456789012:events",
		"FERRY_QUEUE=https://sqs.eu-south-1.amazonaws.com/123456789012/mail", "FERRY_MAIL_FROM=ferry@example.com", "FERRY_MAIL_EVENTS=ferry-mail",
	}
	c.Stderr = os.Stderr
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer c.Wait()
	defer c.Process.Kill()
	select {
	case polled := <-a.polls:
		return polled.Sub(began), nil
	case <-ctx.Done():
		return 0, errors.New("it does not poll")
	}
}
