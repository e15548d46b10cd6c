package boot_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/boot/boottest"
)

// invoke builds a function, runs it like Lambda does, with no environment but
// the given one, sends it one event and returns its answer.
func invoke(t *testing.T, name string, event []byte, environment map[string]string) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", program, "./functions/"+name)
	build.Dir = boottest.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", name, err, out)
	}
	answer := make(chan []byte, 1)
	next := make(chan []byte, 1)
	next <- event
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/2018-06-01/runtime/invocation/next":
			select {
			case e := <-next:
				w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
				w.Header().Set("Lambda-Runtime-Deadline-Ms", "32503680000000")
				w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-south-1:123456789012:function:"+name)
				w.Write(e)
			case <-r.Context().Done():
			}
		default: // the answer, or an error
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			answer <- body
		}
	}))
	t.Cleanup(runtime.Close)
	ctx, stop := context.WithCancel(t.Context())
	c := exec.CommandContext(ctx, program)
	c.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(runtime.URL, "http://")}
	for _, k := range slices.Sorted(maps.Keys(environment)) {
		c.Env = append(c.Env, k+"="+environment[k])
	}
	c.Stdout, c.Stderr = t.Output(), t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- c.Wait() }()
	t.Cleanup(func() { stop(); <-exited })
	select {
	case a := <-answer:
		return a
	case err := <-exited:
		exited <- err
		t.Fatalf("%s ended: %v", name, err)
		return nil
	}
}

// environment is what a function with all ports gets.
func environment(getenv func(string) string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{
		"FERRY_TABLE", "FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET", "FERRY_KEY_PARAMETER",
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
