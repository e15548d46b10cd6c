package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReceiverInTheREADMEOfEventsGetsAllEvents compiles the receiver, causes
// events while it is not running, through a server that is killed and through
// commands, and then starts it.
func TestReceiverInTheREADMEOfEventsGetsAllEvents(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	program := buildReceiver(t, addr)
	dir := t.TempDir()
	hook := "http://" + addr + "/ferry-events"
	s := serve(t, dir, "--webhook", hook)
	secret, err := os.ReadFile(filepath.Join(dir, "webhook.secret"))
	if err != nil || !strings.Contains(s.greeting, filepath.Join(dir, "webhook.secret")) {
		t.Fatalf("the greeting does not say where the secret is: %s, %v", s.greeting, err)
	}
	for i := range 3 {
		if s.upload(fmt.Sprint(i), "x") == "" {
			t.Fatal("an upload failed")
		}
	}
	must(t, s.Process.Kill())
	_ = s.Wait()
	for _, args := range [][]string{{"user", "disable", "demo"}, {"user", "remove", "demo", "--yes"}} {
		runFerry(t, dir, "", args...).want(t, exitOK)
	}
	serve(t, dir, "--webhook", hook)

	receiver := exec.CommandContext(t.Context(), program)
	receiver.Env = append(os.Environ(), "FERRY_WEBHOOK_SECRET="+string(secret))
	receiver.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer out.Close()
	var errs bytes.Buffer
	receiver.Stdout, receiver.Stderr = out, &errs
	start(t, receiver)
	var got string
	eventually(t, &errs, func() bool { // an event that was being sent at the kill is due again after 2 minutes
		text, err := os.ReadFile(out.Name())
		must(t, err)
		got = string(text)
		return strings.Count(got, "\n") >= 6
	})
	for i := range 3 {
		for _, what := range []string{"file.uploaded", "file.deleted"} {
			if want := fmt.Sprintf("%s files/demo/%d ", what, i+1); !strings.Contains(got, want) {
				t.Errorf("%s is missing in %q, %s", want, got, errs.String())
			}
		}
	}
	forged := `{"id":"1","type":"file.deleted","subject":"files/demo/1"}`
	for _, signature := range []string{"", "v1,", "v1,AAAA"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", hook, strings.NewReader(forged))
		must(t, err)
		r.Header.Set("webhook-id", "1")
		r.Header.Set("webhook-timestamp", fmt.Sprint(time.Now().Unix()))
		r.Header.Set("webhook-signature", signature)
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("the signature %q is answered with %d", signature, resp.StatusCode)
		}
	}
}

// buildReceiver compiles the program that the page of events shows, for an address.
func buildReceiver(t *testing.T, addr string) string {
	t.Helper()
	text, err := os.ReadFile("../../shared/notify/README.md")
	must(t, err)
	block := regexp.MustCompile("(?s)<!-- A test runs this program. -->\n```go\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the page shows no receiver")
	}
	source := filepath.Join(t.TempDir(), "main.go")
	must(t, os.WriteFile(source, bytes.ReplaceAll(block[1], []byte("127.0.0.1:9000"), []byte(addr)), 0o600))
	program := filepath.Join(t.TempDir(), "receiver")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as all other programs, so that no package is compiled twice
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the receiver cannot be built: %v\n%s", err, out)
	}
	return program
}
