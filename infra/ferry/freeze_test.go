package main

import (
	"fmt"
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

func TestHelpTextsDoNotChange(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var said strings.Builder
	fmt.Fprintln(
		&said,
		"exit codes",
		exitOK,
		exitOther,
		exitUsage,
		exitDamaged,
		exitNoFile,
		exitUnknown,
		exitPort,
		exitExists,
		exitFull,
		exitBusy,
		exitRefused,
		exitPermission,
		exitSettings,
		exitInterrupt,
	)
	calls := []string{"", "nothing", "up", "ls --nothing", "completion bash", "completion zsh", "completion fish"}
	for _, c := range walk(kong.Must(&commands{}, vars()).Model.Node) {
		calls = append(calls, c.Path()+" --help")
	}
	screen := cli.Screen{Raw: &said}
	for _, args := range calls {
		fmt.Fprintf(&said, "$ ferry %s\n", args)
		code := run(t.Context(), strings.Fields(args), cli.Console{
			Program: "ferry",
			In:      strings.NewReader(""),
			Out:     screen,
			Err:     screen,
		})
		fmt.Fprintf(&said, "(%d)\n", code)
	}
	expect.Golden(t, "help.txt", said.String())
}
