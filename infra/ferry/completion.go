package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCommand) Help() string {
	return `To use it, put the line for your shell into its start file:

	bash: source <(ferry completion bash)
	zsh:  source <(ferry completion zsh)
	fish: ferry completion fish | source`
}

func (c completionCommand) Run(k *kong.Kong, out console) error {
	commands := walk(k.Model.Node)
	_, err := io.WriteString(out.Out, map[string]string{
		"bash": bash(commands),
		"zsh":  "autoload -U +X bashcompinit && bashcompinit\n" + bash(commands),
		"fish": fish(commands),
	}[c.Shell])
	return err
}

// walk returns a command and all those below it.
func walk(n *kong.Node) []*kong.Node {
	all := []*kong.Node{n}
	for _, child := range n.Children {
		all = append(all, walk(child)...)
	}
	return all
}

// arguments returns the values that a command's argument may have, and whether its
// arguments are files.
func arguments(n *kong.Node) (values []string, files bool) {
	for _, p := range n.Positional {
		if p.Enum != "" {
			values = p.EnumSlice()
		}
		files = files || p.Name == "path"
	}
	return values, files
}

// bash returns a function that follows the typed words to the command they name.
func bash(commands []*kong.Node) string {
	var paths, cases []string
	for _, c := range commands {
		paths = append(paths, "'"+c.Path()+"'")
		words, files := arguments(c)
		flags, takes := []string{}, ""
		for _, child := range c.Children {
			words = append(words, child.Name)
		}
		for _, f := range slices.Concat(c.AllFlags(true)...) {
			flags = append(flags, "--"+f.Name)
		}
		if files {
			takes = " files=yes"
		}
		cases = append(cases, fmt.Sprintf("\t\t'%s') words='%s' flags='%s'%s ;;\n",
			c.Path(), strings.Join(words, " "), strings.Join(flags, " "), takes))
	}
	return "_ferry() {\n\tlocal path= word i\n\tCOMPREPLY=()\n" +
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tword=${COMP_WORDS[i]}\n\t\tcase \"${path:+$path }$word\" in\n\t\t\t" +
		strings.Join(paths[1:], " | ") + ") path=\"${path:+$path }$word\" ;;\n\t\tesac\n\tdone\n" +
		"\tlocal current=${COMP_WORDS[COMP_CWORD]} words= flags= files=\n\tcase $path in\n" + strings.Join(cases, "") +
		"\tesac\n\t[[ $current == -* ]] && words=$flags files=\n" +
		"\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n" +
		"\t[[ -n $files ]] && while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -f -- \"$current\")\n" +
		"\treturn 0\n}\ncomplete -o filenames -F _ferry ferry\n"
}

// fish returns completions, each on the condition that the words before name its command.
func fish(commands []*kong.Node) string {
	var b strings.Builder
	b.WriteString("function __ferry_at\n\tset -l words (commandline -opc | string match -v -- '-*')\n" +
		"\tset -l wanted ferry $argv\n\ttest (count $words) -ge (count $wanted); or return 1\n" +
		"\ttest \"$words[1..(count $wanted)]\" = \"$wanted\"; or test \"$words[2..(count $wanted)]\" = \"$argv\"\nend\n" +
		"complete -c ferry -f\n")
	for _, c := range commands {
		at := strings.TrimSpace("__ferry_at " + c.Path())
		below := at
		if c.Parent == nil {
			below = "__fish_is_first_token"
		}
		for _, child := range c.Children {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -a %s -d %s\n", below, child.Name, fishQuote(child.Help))
		}
		for _, f := range slices.Concat(c.AllFlags(true)...) {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -l %s -d %s\n", at, f.Name, fishQuote(f.Help))
		}
		values, files := arguments(c)
		for _, v := range values {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -a %s\n", at, v)
		}
		if files {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -F\n", at)
		}
	}
	return b.String()
}

// fishQuote quotes the first sentence of a help text.
func fishQuote(text string) string {
	first, _, _ := strings.Cut(strings.TrimSuffix(text, "."), ". ")
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", " ").Replace(first) + "'"
}
