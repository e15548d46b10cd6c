package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandInTheGreetingWorks runs the command in a shell exactly as it is printed.
func TestCommandInTheGreetingWorks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	dir := filepath.Join(t.TempDir(), "it's a folder")
	s := serve(t, dir)
	line := regexp.MustCompile(`(?m)^\(it is not shown again; (.*) makes a new one\)`).FindStringSubmatch(s.greeting)
	if line == nil {
		t.Fatalf("the greeting is %s", s.greeting)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line[1])
	cmd.Env = append(os.Environ(), asFerry+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "temporary password: ") {
		t.Errorf("%s: %v\n%s", line[1], err, out)
	}
}

func TestServeWarnsAboutMissingProxySettings(t *testing.T) {
	t.Parallel()
	const url, warning = "--public-url=https://files.example.com/v1", "FERRY_TRUST_PROXY"
	for want, args := range map[bool][][]string{
		true:  {{url}, {url, "--trust-proxy=false"}},
		false: {{}, {url, "--trust-proxy"}},
	} {
		for _, a := range args {
			s := serve(t, t.TempDir(), append(a, "--log", "text", "--no-demo")...)
			if code := s.stop(t); code != exitOK || strings.Contains(s.errs.String(), warning) != want {
				t.Errorf("%v: code %d, and it says %s", a, code, s.errs)
			}
		}
	}
}
