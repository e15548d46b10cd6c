package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"ferry/shared/boot/apitest"
	"ferry/shared/client"
	"ferry/shared/wire"
)

const openSesame = "open sesame"

// upProtected uploads a file, and returns its link, which has the password openSesame and a limit of downloads.
func (h *home) upProtected(name, downloads string) string {
	h.t.Helper()
	h.write("secret", []byte(openSesame))
	return h.up(name, "--downloads", downloads, "--password-file", "secret")
}

func TestAPersonIsAskedForThePassword(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("a.txt", []byte("content"))
	link := h.upProtected("a.txt", "2")
	stranger := newHome(t)
	typing := func(lines ...string) (said string) {
		ours, theirs := terminal(t)
		cmd := stranger.command("", "get", "-f", link)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		start(t, cmd)
		theirs.Close() // then reading ends with the command
		for more := make([]byte, 1024); ; {
			n, err := ours.Read(more)
			if said += string(more[:n]); err != nil {
				return said
			}
			if !strings.HasSuffix(said, "Password of the link: ") {
				continue
			}
			if len(lines) == 0 {
				t.Fatalf("it asks again: %s", said)
			}
			_, err = ours.WriteString(lines[0] + "\n")
			must(t, err)
			lines = lines[1:]
		}
	}
	if said := typing("one", "two", "three"); strings.Count(said, "Password of the link: ") != 3 ||
		!strings.Contains(said, "the password is wrong") {
		t.Errorf("three wrong passwords: %s", said)
	}
	if said := typing("wrong", openSesame); !strings.Contains(said, "Wrong password.") ||
		stranger.read("a.txt") != "content" {
		t.Errorf("the right password: %s", said)
	}
}

func TestAnInterruptedGetOfALimitedLinkGoesOnForNothing(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("big.bin", bytes.Repeat([]byte("0123456789abcdef"), 12<<20)) // 192 MiB
	link := h.upProtected("big.bin", "1")
	stranger := newHome(t, "FERRY_LINK_PASSWORD="+openSesame)
	cmd := stranger.command("", "get", link)
	begun := outcome(cmd, func() error {
		must(t, cmd.Start())
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if info, err := os.Stat(filepath.Join(stranger.dir, "big.bin.part")); err == nil && info.Size() > 0 {
				break
			}
		}
		must(t, cmd.Process.Kill())
		return cmd.Wait()
	})
	if _, err := os.Stat(filepath.Join(stranger.dir, "big.bin.part.json")); err != nil {
		t.Skipf("it was too fast to be interrupted: %s", begun.err)
	}
	stranger.env = stranger.env[1:]
	stranger.run("", "get", link).want(t, exitOK, "verified")
	if stranger.read("big.bin") != h.read("big.bin") {
		t.Error("the file has other bytes")
	}
	wantSentence(t, stranger.run("", "get", link, "-f"), exitPermission, "this link is used up")
}

func TestALongListHasABound(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	apitest.Caller{Server: s, Bearer: s.Login("ann", annsPassword)}.Fill(205)
	r := h.run("", "ls", "-l")
	if r.code != exitOK ||
		strings.Count(r.out, "\n") != 1+200 ||
		!strings.Contains(r.err, "the newest 200 files") ||
		!strings.Contains(r.out, "\n       6  ") {
		t.Errorf("code %d, %d lines: %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
}

// TestCommandsHaveAFlagForEachOption: the fields of flags cannot be made from the list of options.
func TestCommandsHaveAFlagForEachOption(t *testing.T) {
	t.Parallel()
	flags := map[string]bool{}
	for _, n := range walk(kong.Must(&commands{}, vars()).Model.Node) {
		for _, f := range n.Flags {
			flags[n.Path()+" --"+f.Name] = true
		}
	}
	for _, o := range new(client.Delivery).Options() {
		commands := []string{"up"}
		if o.Is&wire.Limit != 0 {
			commands = append(commands, "share", "link set")
		}
		for _, command := range commands {
			if o.Flag != "" && !flags[command+" --"+o.Flag] {
				t.Errorf("ferry %s has no flag --%s", command, o.Flag)
			}
		}
	}
}
