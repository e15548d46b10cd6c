package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/infra/stack/emulated"
)

// TestAFunctionCanBeInvoked invokes one that answers the gateway and one that does not.
// The tests of deployed stacks check the answers to all events.
func TestAFunctionCanBeInvoked(t *testing.T) {
	if os.Getenv(emulated.AddressVariable) == "" {
		t.Skip("needs an emulator of AWS: go run ./infra/awslocal -- go test ./infra/invoke")
	}
	t.Chdir("../..")
	text, err := os.ReadFile("events/health.json")
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(wrong, bytes.ReplaceAll(text, []byte(`"status": 200`), []byte(`"status": 204`)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, begins, has, err string }{
		{"feedback events/feedbacksms.json", "null\n", "", ""},
		{"health " + wrong, "200\n", "handlerHealth", "the status is 200, want 204"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), &out, strings.Fields(c.args))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.args, err, c.err)
		}
		if got := out.String(); !strings.HasPrefix(got, c.begins) || !strings.Contains(got, c.has) {
			t.Errorf("%s answers %s", c.args, got)
		}
	}
}

func TestAWrongInvocationIsAClearError(t *testing.T) {
	t.Chdir("../..")
	t.Setenv(emulated.AddressVariable, "")
	for args, want := range map[string]string{
		"nothing":        "there is no functions/nothing here",
		"health nothing": "reading an event: open nothing: no such file",
		"health a b":     "usage: go run ./infra/awslocal",
		"relay":          "go run ./infra/awslocal",
	} {
		if err := run(t.Context(), &bytes.Buffer{}, strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestAnAnswerIsPrintedForPeople(t *testing.T) {
	t.Parallel()
	answer := `{"statusCode":404,"multiValueHeaders":{"B":["1","2"],"A":["x"]},"body":"aGk=","isBase64Encoded":true}`
	for answer, want := range map[string]string{answer: "404\nA: x\nB: 1, 2\n\nhi\n", `{"other":1}`: `{"other":1}` + "\n"} {
		var out bytes.Buffer
		if err := show(&out, []byte(answer)); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", answer, out.String(), err)
		}
	}
}
