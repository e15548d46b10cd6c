package boot_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/boot/boottest"
)

// program is a function that runs like in Lambda.
type program struct {
	*testing.T
	cmd          *exec.Cmd
	limit        time.Duration // of an invocation
	next, answer chan []byte
	exited       chan error
}

// start builds a function and runs it, with no environment but the given one.
// within is a command of the shell that the program is run by, or empty.
func start(t *testing.T, name string, environment map[string]string, within string) *program {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", binary, "./functions/"+name)
	build.Dir = boottest.Root(t)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", name, err, out)
	}
	p := &program{T: t, limit: 15 * time.Minute, next: make(chan []byte, 1), answer: make(chan []byte, 1), exited: make(chan error, 1)}
	runtime := httptest.NewServer(http.HandlerFunc(p.runtime))
	t.Cleanup(runtime.Close)
	p.cmd = exec.CommandContext(t.Context(), binary)
	if within != "" {
		p.cmd = exec.CommandContext(t.Context(), "sh", "-c", within+` && exec "$0"`, binary)
	}
	p.cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(runtime.URL, "http://")}
	for _, k := range slices.Sorted(maps.Keys(environment)) {
		p.cmd.Env = append(p.cmd.Env, k+"="+environment[k])
	}
	p.cmd.Stdout, p.cmd.Stderr = t.Output(), t.Output()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(p.stop)
	return p
}

// runtime is the interface by which a program gets events and gives answers.
func (p *program) runtime(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/2018-06-01/runtime/invocation/next" { // the answer, or an error
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		p.answer <- body
		return
	}
	select {
	case e := <-p.next:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(p.limit).UnixMilli()))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-south-1:123456789012:function:ferry")
		w.Write(e)
	case <-r.Context().Done():
	}
}

// invoke sends one event and returns the answer.
func (p *program) invoke(event []byte) []byte {
	p.Helper()
	p.next <- event
	select {
	case a := <-p.answer:
		return a
	case err := <-p.exited:
		p.exited <- err
		p.Fatalf("the program ended: %v", err)
		return nil
	}
}

// peak is the most memory so far, in KiB. That of a process which has ended
// would not do: it begins with what its parent had.
func (p *program) peak() int {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Skipf("only Linux tells the memory of a process: %v", err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		p.Fatal(err)
	}
	return kb
}

// stop ends the program, if it runs.
func (p *program) stop() {
	_ = p.cmd.Process.Kill()
	p.exited <- <-p.exited
}

// invoke runs a function for one event.
func invoke(t *testing.T, name string, event []byte, environment map[string]string) []byte {
	t.Helper()
	return start(t, name, environment, "").invoke(event)
}

// environment is what a function with all ports gets.
func environment(getenv func(string) string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{
		"FERRY_TABLE", "FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET", "FERRY_KEY_PARAMETER", "FERRY_NOTICES_TOPIC", "FERRY_EVENTS_TOPIC",
		"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SSM",
	} {
		all[name] = getenv(name)
	}
	return all
}

func TestTheProgramOfAFunctionAnswersItsEvent(t *testing.T) {
	t.Parallel()
	getenv := stack(t)
	boottest.Seed(t, openedOn(t, getenv).Ports)
	fixture := boottest.Load(t, "upload")
	answer := invoke(t, "upload", fixture.Event, environment(getenv))
	var r events.APIGatewayProxyResponse
	if err := json.Unmarshal(answer, &r); err != nil || r.StatusCode != fixture.Expect.Status {
		t.Fatalf("the answer is %s, %v", answer, err)
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Expect.MatchHeader(t, r.MultiValueHeaders)
	fixture.Expect.Match(t, body)
}

func TestTheProgramOfTheSweepSweeps(t *testing.T) {
	t.Parallel()
	getenv := stack(t)
	boottest.Seed(t, openedOn(t, getenv).Ports)
	fixture := boottest.Load(t, "sweep")
	fixture.Expect.Match(t, invoke(t, "sweep", fixture.Event, environment(getenv)))
}

func TestTheProgramOfTheLinkKeyAnswersCloudFormation(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("builds a program; it runs with those that need stand-ins for AWS")
	}
	fixture := boottest.Load(t, "linkkey")
	answers := make(chan []byte, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answers <- body
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		io.WriteString(w, `{"Version":1}`)
	}))
	t.Cleanup(server.Close)
	var event map[string]any
	fixture.Decode(t, &event)
	event["ResponseURL"] = server.URL
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	invoke(t, "linkkey", text, map[string]string{
		"AWS_REGION": "eu-south-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_SSM": server.URL, "FERRY_KEY_PARAMETER": "/ferry/link-key",
	})
	var put struct{ Name, Type, Value string }
	if err := json.Unmarshal(<-answers, &put); err != nil || put.Name != "/ferry/link-key" || put.Type != "SecureString" || len(put.Value) != len(boottest.Key) {
		t.Errorf("stored is %s of type %s and %d characters, %v", put.Name, put.Type, len(put.Value), err)
	}
	fixture.Expect.Match(t, <-answers)
}
