package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"ferry/shared/boot/expect"
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
		code := run(t.Context(), strings.Fields(args), console{Program: "ferry", In: strings.NewReader(""), Out: screen{&text}, Err: screen{&text}})
		said.add(args, result{err: text.String(), code: code})
	}
	said.compare(t, "help.txt")
}
