package main

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// helpText contains the longer texts about commands, arguments and flags, each below a line with
// its name. A flag that several commands have is named without a command.
//
//go:embed help.txt
var helpText string

// addHelp gives commands their longer texts, and gives texts to arguments and flags that have none.
func addHelp(k *kong.Kong) error {
	texts := map[string]string{}
	for section := range strings.SplitSeq(strings.TrimPrefix(helpText, "=== "), "\n=== ") {
		name, text, _ := strings.Cut(section, "\n")
		texts[name] = strings.TrimSpace(text)
	}
	shared := strings.NewReplacer(
		"${patterns}",
		texts["patterns"],
		"${exit_codes}",
		texts["exit_codes"],
	)
	line := func(text string) string { return strings.ReplaceAll(text, "\n", " ") }
	for _, n := range walk(k.Model.Node) {
		name := strings.TrimSpace("ferry " + n.Path())
		n.Detail = shared.Replace(texts[name])
		for _, p := range n.Positional {
			p.Help = cmp.Or(p.Help, line(texts[name+" "+p.Name]))
		}
		for _, f := range n.Flags {
			f.Help = cmp.Or(f.Help, line(cmp.Or(texts[name+" --"+f.Name], texts["--"+f.Name])))
		}
	}
	return nil
}
