package assembly_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"ferry/infra/assembly"
	"ferry/infra/lambdahost"
	"ferry/shared/boot/boottest"
	"ferry/shared/endpoint/all"
)

// programsVariable tells the tests where TestMain has put the programs.
const programsVariable = "FERRY_TEST_PROGRAMS"

func programs() string { return os.Getenv(programsVariable) }

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ferry-programs-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = assembly.Build(context.Background(), "../..", dir)
	}
	if err == nil {
		err = os.Setenv(programsVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestEachProgramAnswersItsFixture runs each endpoint's real program with the
// environment that the template gives it.
func TestEachProgramAnswersItsFixture(t *testing.T) {
	t.Parallel()
	for _, e := range all.Endpoints() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			it := stack(t)
			fixture := boottest.Load(t, e.Name)
			result, err := it.Hosts[e.Name].Invoke(t.Context(), fixture.Event)
			if err != nil || result.Failed != "" {
				t.Fatalf("%v, %s: %s", err, result.Failed, result.Payload)
			}
			wantAnswer(t, fixture.Expect, result.Payload)
			t.Logf("init %s, answer %s, %d bytes, peak memory %d MiB", result.Init, result.Took, len(result.Payload), result.Peak>>20)
		})
	}
}

func TestTheLogHasMetricsWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"on": true, "off": false} {
		it := stackWith(t, "metrics-"+value, map[string]string{"Metrics": value})
		environment, err := it.Environment("health")
		if err != nil {
			t.Fatal(err)
		}
		var log safeBuffer
		host := lambdahost.New(lambdahost.Function{Name: "health", Program: filepath.Join(programs(), "health"), Environment: environment, Log: &log})
		if _, err := host.Invoke(t.Context(), boottest.Load(t, "health").Event); err != nil {
			t.Fatal(err)
		}
		if err := host.Close(); err != nil { // now all is written
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), `"Requests":1,`) && strings.Contains(log.String(), `"Namespace":"Ferry"`); got != want {
			t.Errorf("with Metrics %s the log is %s", value, log.String())
		}
	}
}

// safeBuffer takes what a process writes.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func wantAnswer(t *testing.T, want boottest.Expect, payload []byte) {
	t.Helper()
	var r events.APIGatewayProxyResponse
	if err := json.Unmarshal(payload, &r); err != nil || r.StatusCode != want.Status {
		t.Fatalf("status %d, want %d: %s, %v", r.StatusCode, want.Status, payload, err)
	}
	want.MatchHeader(t, r.MultiValueHeaders)
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			t.Fatal(err)
		}
	}
	want.Match(t, body)
}
