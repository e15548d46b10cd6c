package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/expect"
)

// The exit codes, which the tables of tests name often.
const (
	exitOK         = cli.ExitOK
	exitOther      = cli.ExitOther
	exitUsage      = cli.ExitUsage
	exitDamaged    = cli.ExitDamaged
	exitNoFile     = cli.ExitNoFile
	exitUnknown    = cli.ExitUnknown
	exitPort       = cli.ExitPort
	exitExists     = cli.ExitExists
	exitFull       = cli.ExitFull
	exitBusy       = cli.ExitBusy
	exitRefused    = cli.ExitRefused
	exitPermission = cli.ExitPermission
	exitSettings   = cli.ExitSettings
	exitInterrupt  = cli.ExitInterrupt
)

// transcript is a list of commands with their messages and exit codes.
type transcript struct{ strings.Builder }

func (s *transcript) add(args string, r result) {
	fmt.Fprintf(s, "$ ferry %s\n%s(%d)\n", args, r.err, r.code)
}

// compare compares it with a file in testdata. Each text that differs from run to run is followed by its stand-in.
func (s *transcript) compare(t *testing.T, name string, differs ...string) {
	t.Helper()
	expect.Golden(t, name, strings.NewReplacer(append(differs, os.Args[0], "ferry")...).Replace(s.String()))
}

func TestHelpTextsDoNotChange(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var said transcript
	fmt.Fprintln(&said, "exit codes", exitOK, exitOther, exitUsage, exitDamaged, exitNoFile, exitUnknown, exitPort, exitExists, exitFull,
		exitBusy, exitRefused, exitPermission, exitSettings, exitInterrupt)
	calls := []string{"", "nothing", "up", "ls --nothing", "completion bash", "completion zsh", "completion fish"}
	for _, c := range walk(kong.Must(&commands{}, vars()).Model.Node) {
		calls = append(calls, c.Path()+" --help")
	}
	for _, args := range calls {
		var text bytes.Buffer
		code := run(t.Context(), strings.Fields(args), cli.Console{Program: "ferry", In: strings.NewReader(""), Out: cli.Screen{Raw: &text}, Err: cli.Screen{Raw: &text}})
		said.add(args, result{err: text.String(), code: code})
	}
	said.compare(t, "help.txt")
}
