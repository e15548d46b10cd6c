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
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/infra/stack/emulated"
	"ferry/shared/boot/boottest"
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
	t.Setenv("SAM_CLI_TELEMETRY", "0")
	t.Chdir("../..")
	build := exec.CommandContext(t.Context(), "sam", "build", "-b", built, "--parameter-overrides", "Architecture="+architecture())
	build.Env = append(os.Environ(), "ARCHITECTURE="+architecture())
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("sam build: %v: %s", err, out)
	}
	t.Run("an API answers the lines of the README", startAPI)
	t.Run("a function answers one event", func(t *testing.T) {
		var out bytes.Buffer
		check(t, run(t.Context(), &out, []string{"sam", "local", "invoke", "OpenAPI", "--event", "events/openapi.json"}))
		answers(t, "openapi", out.Bytes())
	})
	t.Run("each function answers its events", startLambda)
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

// until waits for a server that a command has started.
func until(ctx context.Context, address string, ended <-chan error) error {
	for {
		if resp, err := http.Get(address); err == nil {
			return resp.Body.Close()
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
	check(t, until(t.Context(), base+"/health", ended))

	root, err := os.Getwd()
	check(t, err)
	readme, err := os.ReadFile("README.md")
	check(t, err)
	block := regexp.MustCompile("(?s)```sh\nLOGIN=.*?\n```").FindString(string(readme))
	script := strings.NewReplacer("demo:PASSWORD", login, "http://127.0.0.1:8080/v1", base, "```sh", "set -eu -o pipefail").Replace(block)
	session, err := os.ReadFile("shared/api/README.md") // with bytes that are no text, and parts that go to the S3 server
	check(t, err)
	script += regexp.MustCompile("(?s)\nhead -c 6000000.*?\n```").FindString(string(session))
	script += `
curl -sf -u $LOGIN -X POST $FERRY/auth/login
LINK=$(curl -sf -u $LOGIN $FERRY/download/list | grep -o 'http[^"]*' | head -1)
curl -sfL "$LINK" | cmp - big.bin                # by a redirect
head -c 1000 /dev/urandom > small.bin
FERRY_PASSWORD=${LOGIN#demo:} go -C ` + root + ` run ./infra/ferry up --session "$PWD/small.bin" --url $FERRY --user demo
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

// startLambda sends each function its events. Each has its own data, so that several
// can run at once.
func startLambda(t *testing.T) {
	names, err := boottest.Names(".")
	check(t, err)
	folders, err := os.ReadDir(built)
	check(t, err)
	ids, environment, address := map[string]string{}, map[string]any{}, ""
	for _, f := range folders {
		ids[strings.ToLower(f.Name())] = f.Name()
	}
	for _, name := range names {
		f := boottest.Load(t, name)
		id := ids[f.Function]
		if environment[id] != nil {
			continue // feedback has two events
		}
		p, own, err := fill(t.Context())
		check(t, err)
		check(t, f.Notices(t.Context(), p))
		environment[id], address = own, own["AWS_ENDPOINT_URL"]
	}
	port := freePort(t)
	cmd, err := sam(t.Context(), environment, "local", "start-lambda", "--port", port)
	check(t, err)
	check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); close(ended) }()
	defer func() { check(t, cmd.Cancel()); <-ended }()
	base := "http://127.0.0.1:" + port + "/2015-03-31/functions/"
	check(t, until(t.Context(), base, ended))

	var all errgroup.Group
	all.SetLimit(4)
	results := make([][]byte, len(names))
	for i, name := range names {
		f := boottest.Load(t, name)
		all.Go(func() (err error) {
			put := make(chan []byte, 1)
			if name == "linkkey" {
				f.Event = answering(t, address, f.Event, put)
			}
			results[i], err = post(base+ids[f.Function]+"/invocations", f.Event)
			select {
			case results[i] = <-put:
			default:
			}
			return err
		})
	}
	check(t, all.Wait())
	for i, name := range names {
		t.Run(name, func(t *testing.T) { answers(t, name, results[i]) })
	}
}

func post(address string, event []byte) ([]byte, error) {
	resp, err := http.Post(address, "application/json", bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// answering lets an event of CloudFormation have its answer put at an address that a
// container can reach.
func answering(t *testing.T, address string, event []byte, put chan<- []byte) []byte {
	host, err := url.Parse(address)
	check(t, err)
	l, err := net.Listen("tcp", net.JoinHostPort(host.Hostname(), "0"))
	check(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // a text that is cut off is not the expected one
		put <- text
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return regexp.MustCompile(`("ResponseURL": ")[^"]*"`).ReplaceAll(event, []byte("${1}http://"+l.Addr().String()+`"`))
}
