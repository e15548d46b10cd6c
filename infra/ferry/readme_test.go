package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsInTheREADMEWork starts the service as the README says and runs
// the README's own blocks of curl lines, one shell for all of them.
func TestCommandsInTheREADMEWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- (?:The lines of this block|So are these)[^>]*-->\n```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 4 {
		t.Fatalf("the README has %d blocks to run, want 4", len(blocks))
	}
	s := serve(t, t.TempDir())
	script := "set -eu -o pipefail\n"
	for _, b := range blocks {
		script += b[1]
	}
	root := strings.TrimSuffix(s.base, "/v1")
	script = strings.NewReplacer("demo:PASSWORD", "demo:"+s.password, "http://127.0.0.1:8080", root, "bin/ferry", os.Args[0]).Replace(script)
	h := newHome(t, "FERRY_PASSWORD=my own long password")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = h.dir, append(h.command("").Env, h.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the lines failed: %v\n%s", err, out)
	}
	for what, want := range map[string]int{
		`"name":"hello.txt"`: 7, `"name":"raw.txt"`: 1, "Hello, Ferry": 1, "handlerAuthForget:succsessfully": 1,
		"handlerAuthLogin:succsessfully": 1, `"bearer":`: 1, `"status":0`: 10,
		`"state":"open"`: 1, `"number":2,"size":757120`: 1, `"name":"big.bin"`: 2, // the session
		"logged in to ": 1, "copy.img: 30.0 MB, verified by crc64nvme": 1, "is restored": 1, `"name": "disk.img"`: 1, "logged out of ": 1, // the command
	} {
		if got := strings.Count(string(out), what); got < want {
			t.Errorf("%s was answered %d times, want %d or more:\n%s", what, got, want, out)
		}
	}
	if strings.Contains(string(out), `"status":4`) {
		t.Errorf("a line was answered with an error:\n%s", out)
	}
}
