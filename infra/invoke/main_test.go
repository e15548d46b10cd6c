package main

import (
	"bytes"
	"strings"
	"testing"

	"ferry/infra/stack/emulated"
)

func TestAWrongInvocationIsAClearError(t *testing.T) {
	t.Chdir("../..")
	t.Setenv(emulated.AddressVariable, "")
	for args, want := range map[string]string{
		"":                 "go run ./infra/awslocal",
		"sam local invoke": "go run ./infra/awslocal",
		"sam":              "usage: go run ./infra/awslocal",
		"health":           "usage: go run ./infra/awslocal",
	} {
		if err := run(t.Context(), &bytes.Buffer{}, strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
