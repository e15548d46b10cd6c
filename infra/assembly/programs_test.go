package assembly_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"ferry/infra/assembly"
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
