package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// interrupted starts an upload and interrupts it once its session is saved.
func (h *home) interrupted(args ...string) result {
	h.t.Helper()
	cmd := h.command("", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	for range 2000 {
		if states, _ := filepath.Glob(filepath.Join(h.dir, "cache", "ferry", "uploads", "*.json")); len(states) == 1 {
			if text, _ := os.ReadFile(states[0]); regexp.MustCompile(`"session":"[^"]`).Match(text) {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		h.t.Fatal(err)
	}
	_ = cmd.Wait()
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func TestInterruptedUploadIsResumedOrAborted(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("big.bin", bytes.Repeat([]byte("0123456789abcdef"), 4<<20)) // 64 MiB
	up := []string{"up", "big.bin", "--part-size", "5242880"}
	if r := h.interrupted(up...); r.code != exitInterrupt || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "interrupted; run the same command again") || r.out != "" {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	if r := h.run("", "uploads", "--json"); r.code != exitOK || !strings.Contains(r.out, `"name":"big.bin"`) {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
	if r := h.run("", up...); r.code != exitOK || !strings.Contains(r.err, "resuming the upload of big.bin") || !strings.Contains(r.err, "(id 1)") {
		t.Errorf("code %d: %s", r.code, r.err)
	}

	if r := h.interrupted(up...); r.code != exitInterrupt {
		t.Fatalf("code %d: %s", r.code, r.err)
	}
	id, _, _ := strings.Cut(strings.Split(h.run("", "uploads").out, "\n")[1], " ")
	if r := h.run("", "uploads", "--abort", id); r.code != exitOK {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	if r := h.run("", "uploads", "--abort", id); r.code != exitNoFile {
		t.Errorf("an upload that has ended is aborted with code %d: %s", r.code, r.err)
	}
	if r := h.run("", up...); r.code != exitOK || strings.Contains(r.err, "resuming") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	if left, _ := os.ReadDir(filepath.Join(h.dir, "cache", "ferry", "uploads")); len(left) != 0 {
		t.Errorf("what is left: %v", left)
	}
}

func TestPartsThatAreTooLargeAreRefused(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("big", bytes.Repeat([]byte("x"), 5<<20))
	if r := h.run("", "up", "big", "--part-size", "6GiB"); r.code != exitRefused || !strings.Contains(r.err, "big: --part-size is at most") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	if r := h.run("", "up", "big", "--part-size", "much"); r.code != exitUsage || !strings.Contains(r.err, "--part-size: not a size such as") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
}

func TestLongStandardInputIsUploaded(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	content := strings.Repeat("0123456789abcdef", 400_000) // 6.4 MB
	if r := h.run(content, "up", "-", "--name", "in.txt"); r.code != exitOK || !strings.Contains(r.err, "sending standard input") || strings.Count(r.out, "\n") != 1 {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	if r := h.run("", "get", "in.txt", "-o", "-"); r.code != exitOK || r.out != content {
		t.Errorf("code %d: %d bytes: %s", r.code, len(r.out), r.err)
	}
	if left, _ := os.ReadDir(filepath.Join(h.dir, "cache", "ferry", "spool")); len(left) != 0 {
		t.Errorf("what is left: %v", left)
	}
}

func TestSHA256OfALargeFileIsKeptOnRequest(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("big", bytes.Repeat([]byte("x"), 5<<20))
	if r := h.run("", "up", "big", "--sha256"); r.code != exitOK {
		t.Fatal(r.err)
	}
	if r := h.run("", "get", "1", "-o", "copy"); r.code != exitOK || !strings.Contains(r.err, "verified by sha-256 and crc64nvme") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	if out, err := exec.Command("cmp", filepath.Join(h.dir, "big"), filepath.Join(h.dir, "copy")).CombinedOutput(); err != nil {
		t.Errorf("%s: %v", out, err)
	}
}
