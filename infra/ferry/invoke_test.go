package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestAFunctionIsInvokedWithItsFixture(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/ferry")
	}
	cmd := ferry(t.Context(), t.TempDir(), "invoke", "health")
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = "../..", &out, &errs
	if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), "200\n") || !strings.Contains(out.String(), "handlerHealth") {
		t.Errorf("%v: %s%s", err, &out, &errs)
	}
}

func TestWhatCannotBeInvokedIsSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantSentence(t, runFerry(t, dir, "", "invoke", "nothing"), exitUsage, "there is no functions/nothing here")
}
