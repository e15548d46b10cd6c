package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
)

// makeTree makes a folder with what a bundle keeps.
func (h *home) makeTree() {
	h.t.Helper()
	for name, content := range map[string]string{
		"tree/a.txt": "first", "tree/empty": "", "tree/photos/été.jpg": "image", "tree/photos/2026/日本.jpg": "another", "tree/run.sh": "#!/bin/sh\n",
		"tree/big.bin": strings.Repeat("0123456789abcdef", 1<<20), "b.txt": "outside",
	} {
		h.write(name, []byte(content))
		must(h.t, os.Chmod(filepath.Join(h.dir, name), 0o644))
		must(h.t, os.Chtimes(filepath.Join(h.dir, name), time.Time{}, time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)))
	}
	must(h.t, os.Chmod(filepath.Join(h.dir, "tree/run.sh"), 0o755))
	must(h.t, os.MkdirAll(filepath.Join(h.dir, "tree/hollow"), 0o755))
}

// TestOddNamesStopNoOthers: names in another charset are sent in UTF-8, and those that no bundle can
// have are named.
func TestOddNamesStopNoOthers(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	for name, content := range map[string]string{
		"tree/a.txt": "first", "tree/caf\xe9.txt": "latin", "tree/\xe9/\x80.txt": "deep", "tree/b\\c.txt": "no", "tree/d\ne.txt": "no", "tree/f\\g/h.txt": "no",
		"tree/twice-\xe9": "one", "tree/twice-é": "another", "odd\\one.txt": "no", "\xe4.txt": "alone",
	} {
		h.write(name, []byte(content))
	}
	r := h.run("", "up", "tree", "odd\\one.txt", "--name", "all")
	if r.code == exitOK || !strings.Contains(r.out, "/v1/download/file?") {
		t.Errorf("code %d\n%s%s", r.code, r.out, r.err)
	}
	for _, odd := range []string{"b\\c.txt", "d\ufffde.txt", "f\\g: ", "odd\\one.txt", "twice-"} {
		if strings.Count(r.err, odd) != 1 {
			t.Errorf("%q is not named once:\n%s", odd, r.err)
		}
	}
	if strings.Contains(r.err, "h.txt") {
		t.Errorf("what is in a folder that is left out is named:\n%s", r.err)
	}
	h.run("", "get", "1", "-o", "got").want(t, exitOK)
	for name, want := range map[string]string{
		"got/tree/a.txt":    "first",
		"got/tree/café.txt": "latin",
		"got/tree/é/€.txt":  "deep",
	} {
		if got := h.read(name); got != want {
			t.Errorf("%s has %q", name, got)
		}
	}
	h.run("", "up", "\xe4.txt", "-q").want(t, exitOK)
	h.run("", "up", "\xe4.txt", "-q", "--session").want(t, exitOK)
	h.run("", "up", "--each", "tree/\xe9", "-q").want(t, exitOK)
	h.run("", "ls").want(t, exitOK, "ä.txt", "€.txt")
	if r := h.run("", "up", "odd\\one.txt", "tree/b\\c.txt"); r.code == exitOK || r.out != "" {
		t.Errorf("a bundle of nothing: code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestAnInterruptedBundleIsResumedUnlessAFileChanged(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.makeTree()
	h.write("tree/large", bytes.Repeat([]byte("0123456789abcdef"), 6<<20)) // 96 MiB
	up := []string{"up", "tree", "b.txt", "--part-size", "5MiB"}
	if r := h.ended(s, os.Interrupt, up...); r.code != exitInterrupt ||
		!strings.Contains(r.err, "interrupted; run the same command again") {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	h.ended(s, os.Kill, up...)
	h.run("", up...).want(t, exitOK, "resuming the upload of tree.zip", "(id 1)")
	h.ended(s, os.Kill, up...)
	h.write("tree/a.txt", []byte("other"))
	h.run("", up...).
		want(t, exitOK, "tree/a.txt has changed since the upload of tree.zip began, so it starts again", "(id 3)")
	h.run("", "uploads", "--json").want(t, exitOK, "[]") // that of id 2 is aborted
	h.run("", "get", "tree.zip", "-o", "got").want(t, exitOK)
	for _, name := range []string{"a.txt", "large", "big.bin"} {
		if h.read("tree/"+name) != h.read("got/tree/"+name) {
			t.Errorf("%s has other bytes", name)
		}
	}
	expect.Equal(t, "what is left", h.unfinished(), nil)
}

// TestAloneMemoryDoesNotGrowWithABundle sends and unpacks a file that needs no room on the sender's disk.
func TestAloneMemoryDoesNotGrowWithABundle(t *testing.T) {
	expect.Alone(t)
	_, h := annsService(t)
	h.write("tree/large", nil)
	must(t, os.Truncate(filepath.Join(h.dir, "tree/large"), 400<<20))
	for _, args := range [][]string{{"up", "tree"}, {"get", "1", "-o", "got"}} {
		cmd := h.command("", args...)
		used := 0 // KiB; the kernel's own maximum has this test's too, from before the exec
		outcome(cmd, func() error {
			must(t, cmd.Start())
			ended := make(chan error)
			go func() { ended <- cmd.Wait() }()
			for {
				select {
				case err := <-ended:
					return err
				case <-time.After(5 * time.Millisecond):
					status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
					if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
						_, _ = fmt.Sscan(after, &used)
					}
				}
			}
		}).want(t, exitOK, "tree.zip")
		if used == 0 || used > 150<<10 {
			t.Errorf("%v used %d KiB", args, used)
		}
	}
}
