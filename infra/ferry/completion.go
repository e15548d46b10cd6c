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
	return `To use it, put the line of your shell into its start file:

	bash: source <(ferry completion bash)
	zsh:  source <(ferry completion zsh)
	fish: ferry completion fish | source`
}

func (c completionCommand) Run(k *kong.Kong, out console) error {
	nodes, script := walk(k.Model.Node, nil), ""
	switch c.Shell {
	case "bash":
		script = bash(nodes)
	case "zsh":
		script = "autoload -U +X bashcompinit && bashcompinit\n" + bash(nodes)
	case "fish":
		script = fish(nodes)
	}
	_, err := io.WriteString(out.Out, script)
	return err
}

// word is a command or a flag, with what it is for.
type word struct{ text, help string }

// choices are what may follow a command, such as "user add".
type choices struct {
	path     string
	commands []word
	flags    []word
	values   []string // words that its argument may be
	files    bool     // files may be its arguments
}

// walk reads the choices from the parser's own model.
func walk(n *kong.Node, path []string) []choices {
	c := choices{path: strings.Join(path, " ")}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			c.flags = append(c.flags, word{"--" + f.Name, f.Help})
		}
	}
	for _, p := range n.Positional {
		if p.Enum != "" {
			c.values = append(c.values, p.EnumSlice()...)
		}
		c.files = c.files || p.Name == "path"
	}
	var below []choices
	for _, child := range n.Children {
		if !child.Hidden {
			c.commands = append(c.commands, word{child.Name, child.Help})
			below = append(below, walk(child, append(slices.Clone(path), child.Name))...)
		}
	}
	return append([]choices{c}, below...)
}

func texts(words []word) string {
	var all []string
	for _, w := range words {
		all = append(all, w.text)
	}
	return strings.Join(all, " ")
}

// bash writes a function that follows the words to the command that they name.
func bash(nodes []choices) string {
	var b strings.Builder
	b.WriteString("_ferry() {\n\tlocal path= word i\n\tCOMPREPLY=()\n")
	b.WriteString("\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tword=${COMP_WORDS[i]}\n\t\tcase \"${path:+$path }$word\" in\n\t\t\t")
	var paths []string
	for _, n := range nodes[1:] {
		paths = append(paths, "'"+n.path+"'")
	}
	b.WriteString(strings.Join(paths, " | ") + ") path=\"${path:+$path }$word\" ;;\n\t\tesac\n\tdone\n")
	b.WriteString("\tlocal current=${COMP_WORDS[COMP_CWORD]} words= flags= files=\n\tcase $path in\n")
	for _, n := range nodes {
		words := strings.TrimSpace(texts(n.commands) + " " + strings.Join(n.values, " "))
		fmt.Fprintf(&b, "\t\t'%s') words='%s' flags='%s'", n.path, words, texts(n.flags))
		if n.files {
			b.WriteString(" files=yes")
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("\tesac\n\t[[ $current == -* ]] && words=$flags files=\n")
	b.WriteString("\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n")
	b.WriteString("\t[[ -n $files ]] && while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -f -- \"$current\")\n" +
		"\treturn 0\n}\ncomplete -o filenames -F _ferry ferry\n")
	return b.String()
}

// fish writes a condition for each command, which holds when the words before
// name it.
func fish(nodes []choices) string {
	var b strings.Builder
	b.WriteString("function __ferry_at\n\tset -l words (commandline -opc | string match -v -- '-*')\n" +
		"\tset -l wanted ferry $argv\n\ttest (count $words) -ge (count $wanted); or return 1\n" +
		"\ttest \"$words[1..(count $wanted)]\" = \"$wanted\"; or test \"$words[2..(count $wanted)]\" = \"$argv\"\nend\n")
	b.WriteString("complete -c ferry -f\n")
	for _, n := range nodes {
		at := "__ferry_at " + n.path
		only := at
		if n.path == "" {
			at, only = "__ferry_at", "__fish_is_first_token"
		}
		for _, w := range n.commands {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -a %s -d %s\n", only, w.text, fishQuote(w.help))
		}
		for _, w := range n.flags {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -l %s -d %s\n", at, strings.TrimPrefix(w.text, "--"), fishQuote(w.help))
		}
		for _, v := range n.values {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -a %s\n", at, v)
		}
		if n.files {
			fmt.Fprintf(&b, "complete -c ferry -n '%s' -F\n", at)
		}
	}
	return b.String()
}

// fishQuote is a text of one line in quotes.
func fishQuote(text string) string {
	first, _, _ := strings.Cut(text, ".")
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", " ").Replace(first) + "'"
}
