package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/apitest"
)

// asFerry is the variable that makes the test's own binary run as ferry.
const asFerry = "TEST_AS_FERRY"

func TestMain(m *testing.M) {
	if os.Getenv(asFerry) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program returns what runs a command: the test's own binary or, if FERRY_TEST_FERRY names a ferry that was built from
// the same code, that one. With the race detector a process takes much longer to start, so in CI only the commands that
// do several things at once have it.
func program(args []string) string {
	built := os.Getenv("FERRY_TEST_FERRY")
	atOnce := []string{"serve", "up", "get", "check", "backup", "restore-data"}
	if built == "" || len(args) == 0 || strings.HasSuffix(args[0], "version") || slices.Contains(atOnce, args[0]) {
		return os.Args[0]
	}
	return built
}

// ferry returns a command of somebody whose data and home are in dir. It reads nothing of whoever runs the tests.
func ferry(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program(args), args...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FERRY_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, asFerry+"=1", "FERRY_DATA="+dir), homeIn(dir)...)
	return cmd
}

// homeIn returns the variables that say where somebody's home is.
func homeIn(dir string) []string {
	return []string{
		"HOME=" + dir,
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"XDG_CACHE_HOME=" + filepath.Join(dir, "cache"),
	}
}

// result is what a command left behind.
type result struct {
	args, out, err string
	code           int
}

// want checks a command's exit code, and that it says these texts.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	said := func(text string) bool { return strings.Contains(r.out+r.err, text) }
	if r.code != code || slices.ContainsFunc(texts, func(text string) bool { return !said(text) }) {
		t.Errorf("ferry %s: code %d, want %d with %q:\n%s%s", r.args, r.code, code, texts, r.out, r.err)
	}
}

// prints checks a command's exit code, and all of its standard output.
func (r result) prints(t *testing.T, code int, out string) {
	t.Helper()
	if r.code != code || r.out != out {
		t.Errorf("ferry %s: code %d, want %d with %.200q:\n%.200q%s", r.args, r.code, code, out, r.out, r.err)
	}
}

func runFerry(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	cmd := ferry(t.Context(), dir, args...)
	cmd.Stdin = strings.NewReader(stdin)
	return outcome(cmd, cmd.Run)
}

// outcome lets a command end, and returns what it left behind.
func outcome(cmd *exec.Cmd, end func() error) result {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = end() // the code says how it went
	return result{strings.Join(cmd.Args[1:], " "), out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// server is a started ferry serve.
type server struct {
	*exec.Cmd
	addr     string
	base     string
	greeting string
	password string // of demo, on the first start
	bearer   string // of demo, if any
	errs     *bytes.Buffer
	client   http.Transport // its own: a test that ends closes the idle connections of the default one
}

func serve(t testing.TB, dir string, args ...string) *server {
	t.Helper()
	addr := freeAddr(t)
	s := &server{addr: addr, base: "http://" + addr + "/v1", errs: &bytes.Buffer{}}
	s.Cmd = ferry(context.Background(), dir, append([]string{"serve", "--addr", addr, "--log", "off"}, args...)...)
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // what is printed to a file can be read at once
	must(t, err)
	defer out.Close()
	s.Stdout, s.Stderr = out, s.errs
	start(t, s.Cmd)
	eventually(t, s.errs, func() bool {
		resp, err := http.Get(s.base + "/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	greeting, err := os.ReadFile(out.Name())
	must(t, err)
	s.greeting = string(greeting)
	if m := regexp.MustCompile(`with the password in (.+)`).FindSubmatch(greeting); m != nil {
		text, _ := os.ReadFile(string(m[1]))
		s.password = strings.TrimSpace(string(text))
	}
	return s
}

// start starts a command, which ends with the test.
func start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// eventually waits for something that happens by itself. If it does not, the test ends with what was said.
func eventually(t testing.TB, said fmt.Stringer, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 minutes: %s", said)
		}
	}
}

// healthy waits until ferry health finds a service.
func healthy(t *testing.T, args ...string) {
	t.Helper()
	var last bytes.Buffer
	eventually(t, &last, func() bool {
		r := runFerry(t, t.TempDir(), "", append([]string{"health"}, args...)...)
		last.WriteString(r.err)
		return r.code == exitOK
	})
}

// do sends a request by the user demo and returns its status, which is 0 if there is no answer.
func (s *server) do(method, path, body string) (status int, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // a starved server may take no connection
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	if req.SetBasicAuth("demo", s.password); s.bearer != "" && !strings.HasPrefix(path, "/auth") {
		req.Header.Set("Authorization", "Bearer "+s.bearer)
	}
	resp, err := s.client.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(answer)
}

// get downloads a file by its link, also by that of a server with another port on the same data.
func (s *server) get(link string) (status int, content string) {
	_, path, _ := strings.Cut(link, "/v1")
	return s.do("GET", path, "")
}

// files returns the files in the answer to a request, none if it fails.
func (s *server) files(method, path, body string) []apitest.File {
	var e apitest.Envelope
	if status, text := s.do(method, path, body); status != http.StatusOK || json.Unmarshal([]byte(text), &e) != nil {
		return nil
	}
	return e.Files
}

// upload stores a file, and returns its link unless that fails.
func (s *server) upload(name, content string) (link string) {
	for _, f := range s.files("POST", "/upload?file="+name, content) {
		if f.Name == name {
			return f.LinkURL
		}
	}
	return ""
}

// begin begins an upload whose body is still to be written. The service reads it when it has checked everything else.
func (s *server) begin() (body io.WriteCloser, ended <-chan int) {
	read, write := io.Pipe()
	req, _ := http.NewRequest("PUT", s.base+"/upload?file=x", read)
	req.SetBasicAuth("demo", s.password)
	req.Header.Set("Expect", "100-continue")
	status := make(chan int, 1)
	go func() {
		resp, err := (&http.Transport{ExpectContinueTimeout: time.Minute}).RoundTrip(req)
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	return write, status
}

// stop asks the server to end and returns its exit code.
func (s *server) stop(t testing.TB) int {
	t.Helper()
	must(t, s.Process.Signal(syscall.SIGTERM))
	_ = s.Wait()
	return s.ProcessState.ExitCode()
}

// wantSentence checks that a failure is one sentence, and no more.
func wantSentence(t *testing.T, r result, code int, contains string) {
	t.Helper()
	if r.code != code ||
		strings.Count(r.err, "\n") != 1 ||
		!strings.HasPrefix(r.err, "ferry: ") ||
		!strings.Contains(r.err, contains) {
		t.Errorf("ferry %s: code %d, want %d; wanted one sentence with %q, got:\n%s",
			r.args, r.code, code, contains, r.err)
	}
}

func TestServeDoesNotStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=4m")
	noSpace(t, nil, dir)
	wantSentence(t, runFerry(t, dir, "", "serve", "--addr", "127.0.0.1:0"), exitFull, "space")
}

func TestNumberOfUploadsCanBeSet(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--max-uploads", "1")
	first, ended := s.begin()
	io.WriteString(first, "it is under way") // read when the server asks for it
	if status, text := s.do("POST", "/upload?file=x", "one more"); status != http.StatusServiceUnavailable {
		t.Errorf("one more is answered with %d: %s", status, text)
	}
	first.Close()
	if status := <-ended; status != http.StatusOK {
		t.Errorf("the first is answered with %d", status)
	}
}

// TestEveryNameInTheCodeIsKnown looks for names of settings in all of the code, the
// template's and the tests' included.
func TestEveryNameInTheCodeIsKnown(t *testing.T) {
	t.Parallel()
	var environ []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && d.Name() != "template.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`\bFERRY_[A-Z0-9_]+\b`).FindAllString(string(text), -1) {
			environ = append(environ, name+"=x", name+"_FILE=x")
		}
		return err
	})
	if err != nil || len(environ) < 1000 {
		t.Fatalf("%d names, %v", len(environ), err)
	}
	k, err := kong.New(&commands{}, vars())
	must(t, err)
	if err := checkNames(
		cli.Console{Err: cli.Screen{Raw: io.Discard}},
		settingNames(k.Model.Node),
		environ,
		true,
	); err != nil {
		t.Error(err)
	}
}
