package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ferry/shared/client"
)

func TestCtrlCEndsAWaitForInput(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	for _, k := range []struct{ args, input, says string }{
		{args: "up -", input: strings.Repeat("x", client.SmallFile+1), says: "sending standard input"},
		{args: "passwd --first --user ann", says: "temporary password: "},
		{args: "login http://files.invalid --user ann --password-stdin", says: "ferry: warning: "},
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
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupt ||
			!strings.HasSuffix(string(text), "ferry: interrupted\n") {
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
