//go:build stack

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/infra/stack/emulated"
	"ferry/shared/boot/boottest"
	"ferry/shared/web/browsertest"
)

// TestSAMRunsTheFunctionsOnThisMachine builds the functions once, for this machine.
func TestSAMRunsTheFunctionsOnThisMachine(t *testing.T) {
	if os.Getenv(emulated.AddressVariable) == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test -tags stack ./infra/invoke")
	}
	if err := exec.CommandContext(t.Context(), "docker", "info").Run(); err != nil {
		t.Skipf("Docker does not run here: %v", err)
	}
	if _, err := exec.LookPath("sam"); err != nil {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	browsertest.Alone(t)
	t.Setenv("SAM_CLI_TELEMETRY", "0")
	t.Chdir("../..")
	build := exec.CommandContext(
		t.Context(),
		"sam",
		"build",
		"-b",
		built,
		"--parameter-overrides",
		"Architecture="+architecture(),
	)
	build.Env = append(os.Environ(), "ARCHITECTURE="+architecture())
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("sam build: %v: %s", err, out)
	}
	slowly(t, built+"/template.yaml")
	t.Run("an API answers the lines of the README", startAPI)
	t.Run("a function answers one event", func(t *testing.T) {
		var out bytes.Buffer
		for try := 0; out.Len() == 0 && try < 10; try++ { // SAM prints nothing if a function does not answer it in time
			check(t, run(t.Context(), &out, []string{
				"sam", "local", "invoke", "OpenAPI", "--event", "events/openapi.json",
			}))
		}
		answers(t, "openapi", out.Bytes())
	})
}

// slowly gives the functions of a template ten times their time, as machines for tests can be slow.
func slowly(t *testing.T, template string) {
	t.Helper()
	text, err := os.ReadFile(template)
	check(t, err)
	slow := regexp.MustCompile(`(?m)^( +Timeout: \d+)$`).ReplaceAll(text, []byte("${1}0"))
	check(t, os.WriteFile(template, slow, 0o644))
}

func answers(t *testing.T, name string, answer []byte) {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, answer); err != nil {
		t.Errorf("the answer is not JSON: %v: %s", err, answer)
	}
	check(t, boottest.Load(t, name).Expect.Check(compact.Bytes()))
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	check(t, err)
	return port
}

// until waits for a server that a command has started, and for a function behind it: on a busy machine Docker may
// need more than the minute that SAM gives it to start a container.
func until(ctx context.Context, method, address string, ended <-chan error) error {
	for {
		r, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			if resp.StatusCode < http.StatusInternalServerError {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("SAM ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// startAPI runs the README's lines of curl and more.
func startAPI(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	args := []string{"sam", "local", "start-api", "--port", freePort(t), "--warm-containers", "LAZY"}
	go func() { ended <- run(ctx, out, args); out.Close(); close(ended) }()
	defer func() { stop(); check(t, <-ended) }()
	var login, base string
	if _, err := fmt.Fscanf(lines, "LOGIN=%s\nFERRY=%s\n", &login, &base); err != nil {
		t.Fatalf("it ended before it said who can log in: %v", <-ended)
	}
	go io.Copy(io.Discard, lines)
	for _, route := range []string{
		"GET /health", "POST /upload", "GET /download/list", "GET /download/file", "DELETE /files/1", "POST /files/1/restore", "GET /uploads", "POST /auth/login",
	} {
		method, path, _ := strings.Cut(route, " ")
		check(t, until(t.Context(), method, base+path, ended))
	}

	root, err := os.Getwd()
	check(t, err)
	readme, err := os.ReadFile("README.md")
	check(t, err)
	block := regexp.MustCompile("(?s)```sh\nLOGIN=.*?\n```").FindString(string(readme))
	script := strings.NewReplacer(
		"demo:PASSWORD",
		login,
		"http://127.0.0.1:8080/v1",
		base,
		"```sh",
		"set -eu -o pipefail",
	).
		Replace(block)
	session, err := os.ReadFile("shared/api/README.md") // with bytes that are no text, and parts that go to the S3 server
	check(t, err)
	script += regexp.MustCompile("(?s)\nhead -c 6000000.*?\n```").FindString(string(session))
	script += `
curl -sf -u $LOGIN -X POST $FERRY/auth/login
LINK=$(curl -sf -u $LOGIN $FERRY/download/list | grep -o 'http[^"]*' | head -1)
curl -sfL "$LINK" | cmp - big.bin                # by a redirect
head -c 1000 /dev/urandom > small.bin
FERRY_PASSWORD=${LOGIN#demo:} go -C ` +
		root +
		` run ./infra/ferry up --session "$PWD/small.bin" --url $FERRY --user demo
LINK=$(curl -sf -u $LOGIN $FERRY/download/list | grep -o 'http[^"]*' | head -1)
curl -sfL "$LINK" | cmp - small.bin
`
	script = strings.ReplaceAll(script, "```", "")
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "TMPDIR="+c.Dir)
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for what, want := range map[string]int{`"name":"hello.txt"`: 3, "handlerAuthLogin:succsessfully": 1} {
		if got := strings.Count(string(text), what); got < want {
			t.Errorf("%s was answered %d times, want %d or more:\n%s", what, got, want, text)
		}
	}
	files, err := filepath.Glob(filepath.Join(c.Dir, "*", "got", "hello.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the downloads are %q, %v", files, err)
	}
	if got, err := os.ReadFile(files[0]); string(got) != "Hello, Ferry\n" {
		t.Errorf("the download is %q, %v", got, err)
	}
}
