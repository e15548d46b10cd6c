package main

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ferry/infra/ferry/cli"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// forBash works for zsh too. Where no word fits, the shell completes file names.
const forBash = `_ferry() {
	local IFS=$'\n'
	COMPREPLY=($(ferry complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" | cut -f 1))
}
complete -o default -F _ferry ferry
`

const forFish = `complete -c ferry -f -a '(ferry complete -- (commandline -opc)[2..] (commandline -ct))'
complete -c ferry -n 'test (count (commandline -opc)) -gt 1' -F
`

func (c completionCommand) Run(out cli.Console) error {
	_, err := io.WriteString(out.Out, map[string]string{
		"bash": forBash,
		"zsh":  "autoload -U +X bashcompinit && bashcompinit\n" + forBash,
		"fish": forFish,
	}[c.Shell])
	return err
}

// completeCommand is called by the shell.
type completeCommand struct {
	Words []string `arg:"" optional:"" help:"What is typed, up to the word to complete."`
}

func (c completeCommand) Run(k *kong.Kong, out cli.Console) error {
	at, current := k.Model.Node, ""
	if last := len(c.Words) - 1; last >= 0 {
		current = c.Words[last]
		for _, word := range c.Words[:last] {
			if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
				at = at.Children[i]
			}
		}
	}
	say := func(word, help string) {
		if strings.HasPrefix(word, current) {
			first, _, _ := strings.Cut(strings.TrimSuffix(help, "."), ". ")
			out.Print("%s\t%s\n", word, first)
		}
	}
	for _, child := range at.Children {
		if !child.Hidden {
			say(child.Name, child.Help)
		}
	}
	for _, p := range at.Positional {
		if p.Enum != "" {
			for _, value := range p.EnumSlice() {
				say(value, p.Help)
			}
		}
	}
	for _, f := range slices.Concat(at.AllFlags(true)...) {
		if strings.HasPrefix(current, "-") {
			say("--"+f.Name, f.Help)
		}
	}
	return nil
}

// walk returns a command and all those below it.
func walk(n *kong.Node) []*kong.Node {
	all := []*kong.Node{n}
	for _, child := range n.Children {
		all = append(all, walk(child)...)
	}
	return all
}
