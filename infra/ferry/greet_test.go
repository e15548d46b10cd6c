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
	line := regexp.MustCompile(`(?m)^\((?:it is not shown again; )?(.*) makes a new one\)`).
		FindStringSubmatch(s.greeting)
	if line == nil {
		t.Fatalf("the greeting is %s", s.greeting)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line[1])
	cmd.Env = append(os.Environ(), asFerry+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "temporary password: ") {
		t.Errorf("%s: %v\n%s", line[1], err, out)
	}
}

// TestCurlLinesInTheGreetingWork runs them in one folder, one after the other.
func TestCurlLinesInTheGreetingWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	s, folder, link := serve(t, t.TempDir()), t.TempDir(), ""
	lines := regexp.MustCompile(`(?m)^  (?:echo|curl) .*$`).FindAllString(s.greeting, -1)
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "LINK", link, 1))
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if links := regexp.MustCompile(`http[^"]*`).FindAllString(string(out), 1); links != nil {
			link = links[0]
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "got", "hello.txt")); string(text) != "Hello, Ferry\n" ||
		len(lines) != 4 {
		t.Errorf("%q, %v, %q", text, err, lines)
	}
}

// TestAnotherServerOnTheSameDataIsTold starts servers beside one that is then killed.
func TestAnotherServerOnTheSameDataIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside := func(public string) string {
		s := serve(t, dir, "--trust-proxy", "--public-url="+public, "--log=text", "--no-demo")
		s.stop(t)
		return s.errs.String()
	}
	const one, other = "https://one.example.com/v1", "https://other.example.com/v1"
	first := serve(t, dir, "--trust-proxy", "--public-url="+one)
	for public, want := range map[string]int{one: 0, other: 1} {
		log := beside(public)
		if strings.Count(log, "level=WARN") != want || want > 0 && !strings.Contains(log, "["+one+"]") {
			t.Errorf("a server for %s says %s", public, log)
		}
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if log := beside(other); strings.Contains(log, "level=WARN") {
		t.Errorf("beside nothing a server says %s", log)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "serving-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
