package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachKindOfFunctionIsInvokedWithItsFixture(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/ferry")
	}
	for _, c := range []struct{ args, begins, has string }{
		{"health", "200\n", "handlerHealth"},
		{"downloadlist", "200\n", "plan.txt"},
		{"relay", `{"batchItemFailures":[]}`, ""},
		{"email", `{"batchItemFailures":[]}`, ""},
		{"feedback events/feedbacksms.json", "null\n", ""},
		{"sweep", `{"Seen":3,`, ""},
		{"linkkey", `{"Status":"SUCCESS"`, ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			out, errs, err := invoke(t, nil, strings.Fields(c.args)...)
			if err != nil || !strings.HasPrefix(out, c.begins) || !strings.Contains(out, c.has) || !strings.Contains(errs, "as the event expects") {
				t.Errorf("%v: %s%s", err, out, errs)
			}
		})
	}
}

func TestAnAnswerThatIsNotTheExpectedOneIsShownAndFails(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/ferry")
	}
	text, err := os.ReadFile("../../events/health.json")
	if err != nil {
		t.Fatal(err)
	}
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, bytes.ReplaceAll(text, []byte(`"status": 200`), []byte(`"status": 204`)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := invoke(t, nil, "health", event)
	if err == nil || !strings.HasPrefix(out, "200\n") || !strings.Contains(errs, "the status is 200, want 204") {
		t.Errorf("%v: %s%s", err, out, errs)
	}
}

func TestAFunctionIsInvokedOnTheDataOfAStack(t *testing.T) {
	t.Parallel()
	stack := []string{"FERRY_TABLE=t", "FERRY_FILES_BUCKET=f", "FERRY_BACKUP_BUCKET=b", "FERRY_KEY_PARAMETER=/ferry/link-key", "AWS_REGION=eu-south-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret"}
	out, errs, err := invoke(t, stack, "openapi")
	if err != nil || !strings.HasPrefix(out, "200\n") {
		t.Errorf("%v: %.200s%s", err, out, errs)
	}
	_, errs, err = invoke(t, stack, "relay")
	if err == nil || !strings.Contains(errs, "FERRY_NOTICES_TOPIC is not set") {
		t.Errorf("%v: %s", err, errs)
	}
}

// invoke runs the command in the project's root.
func invoke(t *testing.T, environment []string, args ...string) (out, errs string, err error) {
	t.Helper()
	cmd := ferry(t.Context(), t.TempDir(), append([]string{"invoke"}, args...)...)
	var o, e bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = "../..", &o, &e
	cmd.Env = append(cmd.Env, environment...)
	err = cmd.Run()
	return o.String(), e.String(), err
}

func TestWhatCannotBeInvokedIsSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantSentence(t, runFerry(t, dir, "", "invoke", "nothing"), exitUsage, "there is no functions/nothing here")
	_, errs, err := invoke(t, []string{"AWS_ENDPOINT_URL_DYNAMODB="}, "relay")
	if err == nil || !strings.Contains(errs, "go run ./infra/awslocal -- bin/ferry invoke relay") {
		t.Errorf("%v: %s", err, errs)
	}
}
