package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ferry/shared/client"
)

func TestSavedLoginIsMadeUnreadableForOthers(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	path := filepath.Join(h.dir, "config", "ferry", "login.json")
	must(t, os.Chmod(path, 0o644))
	for _, want := range []string{"ferry: warning: others could read " + path, ""} {
		r := h.run("", "ls")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || r.code != exitOK || !strings.HasPrefix(r.err, want) || want == "" && r.err != "" {
			t.Errorf("%v, %v: code %d: %s", info.Mode(), err, r.code, r.err)
		}
	}
}

// TestCommandsWorkWithoutAHome: containers and cron jobs often have none, or a
// read-only one.
func TestCommandsWorkWithoutAHome(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("small", []byte("small"))
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	h.write("large", large)
	none := []string{"HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME="}
	unusable := filepath.Join(h.dir, "small") // a file, so it cannot hold a folder
	for what, env := range map[string][]string{
		"no home":                          none,
		"a home that cannot be written to": {"HOME=" + unusable, "XDG_CONFIG_HOME=" + h.dir, "XDG_CACHE_HOME=" + unusable},
	} {
		h := &home{t, h.dir, append(env, "FERRY_URL="+s.Root, "FERRY_USER=ann", "FERRY_PASSWORD="+annsPassword, "TMPDIR="+h.dir)}
		if r := h.run("", "up", "--each", "small", "large"); r.code != exitOK || strings.Count(r.out, "http") != 2 || !strings.Contains(r.err, "cannot be resumed later") {
			t.Errorf("%s: files: code %d: %s%s", what, r.code, r.out, r.err)
		}
		h.run(string(large), "up", "-").want(t, exitOK)
		h.run("", "get", "stdin", "-o", "-").prints(t, exitOK, string(large))
	}
	h.env = append(h.env, none...)
	h.run("x", "login", s.Root, "--user", "ann", "--password-stdin").want(t, exitPermission)
	h.run(annsPassword, "login", s.Root, "--user", "ann", "--password-stdin").want(t, exitSettings, "saving the login: there is no folder for settings")
}

func TestStandardInputIsSentInParts(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	temp := t.TempDir()
	h.env = append(h.env, "TMPDIR="+temp)
	for _, length := range []int{12 << 20, 10 << 20} {
		content := strings.Repeat("0123456789abcdef", length/16)
		r := h.run(content, "up", "-", "--part-size", "5MiB", "--name", "piped")
		if r.code != exitOK || !strings.Contains(r.err, "sending standard input") || strings.Count(r.out, "\n") != 1 {
			t.Fatalf("up -: code %d: %s%s", r.code, r.out, r.err)
		}
		h.run("", "get", strings.TrimSpace(r.out), "-o", "-").prints(t, exitOK, content)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("in the temporary folder there are %v, %v", left, err)
	}
	h.run("", "uploads").want(t, exitOK, "no uploads")
	h.run(strings.Repeat("x", client.SmallFile+1), "up", "-", "--sha256").want(t, exitUsage)
}

func TestCtrlCEndsAWaitForInput(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	for _, k := range []struct{ args, input, says string }{
		{"up -", strings.Repeat("x", client.SmallFile+1), "sending standard input"},
		{"passwd --first --user ann", "", "temporary password: "},
		{"login http://files.invalid --user ann --password-stdin", "", "ferry: warning: "},
	} {
		cmd := h.command("", strings.Fields(k.args)...)
		cmd.Stdin = nil
		in, err := cmd.StdinPipe() // stays open
		must(t, err)
		errs, err := cmd.StderrPipe()
		must(t, err)
		must(t, cmd.Start())
		_, _ = io.WriteString(in, k.input)
		if _, err := io.ReadFull(errs, make([]byte, len(k.says))); err != nil {
			t.Errorf("ferry %s: %v", k.args, err)
		}
		_ = cmd.Process.Signal(os.Interrupt)
		text, _ := io.ReadAll(errs)
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupt || !strings.HasSuffix(string(text), "ferry: interrupted\n") {
			t.Errorf("ferry %s: code %d: %s", k.args, cmd.ProcessState.ExitCode(), text)
		}
	}
}

func TestTerminalEchoesAgainAfterCtrlCAtAPassword(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	ours, theirs := terminal(t)
	cmd := h.command("", "login", s.Root, "--user", "ann")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	must(t, cmd.Start())
	if _, err := io.ReadFull(ours, make([]byte, len("password of ann: "))); err != nil {
		t.Fatal(err)
	}
	eventually(t, &bytes.Buffer{}, func() bool { return !echoes(t, theirs) })
	_ = cmd.Process.Signal(os.Interrupt)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupt || !echoes(t, theirs) {
		t.Errorf("code %d, echo %v", cmd.ProcessState.ExitCode(), echoes(t, theirs))
	}
}

// terminal opens a pseudo-terminal and returns its two sides.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	must(t, err)
	return state.Lflag&unix.ECHO != 0
}

func TestUsageErrorsAreInTheJSONToo(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("a.txt", []byte("a"))
	h.run("", "up", "a.txt")
	for _, args := range []string{"up --each missing a.txt", "up missing", "up missing a.txt", "up a.txt --to nobody", "get missing a.txt", "rm missing a.txt", "restore missing a.txt", "ls", "uploads", "uploads --abort 1-x"} {
		r := h.run("", append(strings.Fields(args), "--json")...)
		var all []map[string]any
		if err := json.Unmarshal([]byte(r.out), &all); err != nil {
			t.Errorf("ferry %s: %v: %s", args, err, r.out)
		}
		failed := 0
		for _, one := range all {
			if one["error"] != nil {
				failed++
			}
		}
		if (failed > 0) != (r.code != exitOK) {
			t.Errorf("ferry %s: code %d, %d failures in %s", args, r.code, failed, r.out)
		}
	}
}
