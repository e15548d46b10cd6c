package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ferry/shared/boot/expect"
)

// wantSame checks that two folders have the same files, with the same times and modes, and the same folders.
func (h *home) wantSame(one, other string) {
	h.t.Helper()
	list := func(dir string) string {
		cmd := exec.Command("sh", "-c", `find . -type d -printf '%p\n' -o -printf '%p %m %Ts\n' | sort; find . -type f -exec cksum {} + | sort`)
		cmd.Dir = filepath.Join(h.dir, dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			h.t.Error(err)
		}
		return string(out)
	}
	if a, b := list(one), list(other); a != b || a == "" {
		h.t.Errorf("%s has\n%s\nand %s\n%s", one, a, other, b)
	}
}

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

func TestPeopleSendFoldersAsBundles(t *testing.T) {
	t.Parallel()
	service, h := annsService(t)
	h.makeTree()
	h.write("other/b.txt", []byte("third"))
	h.write("same/tree/x", nil)
	h.write("mine/tree/a.txt", []byte("mine"))
	takeSteps(t, h.run, "bundles.txt", service.Root)
	if h.read("got/b.txt") != "outside" || h.read("tree/b.txt") != "outside" || h.read("kept.zip") != h.read("named.ZIP") {
		t.Error("the files differ")
	}
	must(t, os.Remove(filepath.Join(h.dir, "tree/b.txt")))
	h.wantSame("tree", "got/tree")
	h.wantSame("tree", "mine/tree")
	if out, err := exec.Command("find", filepath.Join(h.dir, "some"), "-type", "f").Output(); err != nil || strings.Count(string(out), "\n") != 3 {
		t.Errorf("%s, %v", out, err)
	}
	for _, gone := range []string{"none", "got/tree.zip.unpacking"} {
		if _, err := os.Stat(filepath.Join(h.dir, gone)); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
}

func TestLinksInAFolderAreSkippedAndNamed(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("tree/a.txt", []byte("first"))
	must(t, os.Symlink("/etc/passwd", filepath.Join(h.dir, "tree/link")))
	must(t, os.Symlink("/etc", filepath.Join(h.dir, "tree/folder")))
	must(t, syscall.Mkfifo(filepath.Join(h.dir, "tree/pipe"), 0o600))
	h.run("", "up", "tree", "-q").want(t, exitOK, "skipped tree/link, which is not a regular file", "skipped tree/folder,", "skipped tree/pipe,")
	h.run("", "get", "1", "-o", "got").want(t, exitOK)
	if all, _ := os.ReadDir(filepath.Join(h.dir, "got/tree")); len(all) != 1 || h.read("got/tree/a.txt") != "first" {
		t.Errorf("unpacked %v", all)
	}
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
	for name, want := range map[string]string{"got/tree/a.txt": "first", "got/tree/café.txt": "latin", "got/tree/é/€.txt": "deep"} {
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

func TestTooManyFilesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	for i := range 10_001 {
		h.write(fmt.Sprintf("tree/%d/%d", i/100, i), nil)
	}
	before := s.Log.String()
	wantSentence(t, h.run("", "up", "tree"), exitUsage, "tree: a bundle can have at most 10,000 files and empty folders")
	if s.Log.String() != before {
		t.Error("a request was sent")
	}
	must(t, os.Remove(filepath.Join(h.dir, "tree/0/0")))
	h.run("", "up", "tree").want(t, exitOK, "tree.zip: ")
}

func TestAnInterruptedBundleIsResumedUnlessAFileChanged(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.makeTree()
	h.write("tree/large", bytes.Repeat([]byte("0123456789abcdef"), 6<<20)) // 96 MiB
	up := []string{"up", "tree", "b.txt", "--part-size", "5MiB"}
	if r := h.ended(s, os.Interrupt, up...); r.code != exitInterrupt || !strings.Contains(r.err, "interrupted; run the same command again") {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	h.ended(s, os.Kill, up...)
	h.run("", up...).want(t, exitOK, "resuming the upload of tree.zip", "(id 1)")
	h.ended(s, os.Kill, up...)
	h.write("tree/a.txt", []byte("other"))
	h.run("", up...).want(t, exitOK, "tree/a.txt has changed since the upload of tree.zip began, so it starts again", "(id 3)")
	h.run("", "uploads", "--json").want(t, exitOK, "[]") // that of id 2 is aborted
	h.run("", "get", "tree.zip", "-o", "got").want(t, exitOK)
	for _, name := range []string{"a.txt", "large", "big.bin"} {
		if h.read("tree/"+name) != h.read("got/tree/"+name) {
			t.Errorf("%s has other bytes", name)
		}
	}
	expect.Equal(t, "what is left", h.unfinished(), nil)
}

func TestAnUnpackedBundleCountsOnce(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.makeTree()
	h.write("tree/long", bytes.Repeat([]byte("0123456789abcdef"), 3<<20)) // several ranges
	h.write("secret", []byte(openSesame))
	open := h.up("tree")
	guarded := h.up("tree", "--downloads", "1", "--password-file", "secret")
	stranger := newHome(t)
	stranger.write("secret", []byte(openSesame))
	stranger.run("", "get", open, "-o", "open").want(t, exitOK, "open: 7 files")
	counted := func(id string) { // downloads are written a moment later
		t.Helper()
		eventually(t, &bytes.Buffer{}, func() bool { return !strings.Contains(h.run("", "show", id).out, "downloads  0") })
		h.run("", "show", id).want(t, exitOK, "entries    8", "downloads  1, ")
	}
	counted("1")
	wantSentence(t, stranger.run("", "get", guarded), exitPermission, "the link needs a password")
	stranger.run("", "get", guarded, "-o", "guarded", "--password-file", "secret").want(t, exitOK, "guarded: 7 files")
	counted("2")
	wantSentence(t, stranger.run("", "get", guarded, "--password-file", "secret"), exitPermission, "this link is used up")
	stranger.wantSame("open", "guarded")
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
