// Command ferry runs Ferry on one machine, operates it there or in the cloud, and
// is the client for people. See ferry --help.
//
// Package client has the commands for people, package operator those for people who run a service, and package
// serve the service itself; package cli has what they share. Start reading at the type commands.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"ferry/infra/ferry/cli"
	"ferry/infra/ferry/client"
	"ferry/infra/ferry/operator"
	serving "ferry/infra/ferry/serve"
	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/notify/texts"
	"ferry/shared/service"
	"ferry/shared/table"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as with nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal asks to end; a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], cli.Console{
		Program: os.Args[0],
		In:      os.Stdin,
		Out:     cli.Screen{Raw: os.Stdout},
		Err:     cli.Screen{Raw: os.Stderr},
	}))
}

// run runs the command that the arguments name and returns the exit code.
func run(ctx context.Context, args []string, c cli.Console) int {
	var all commands
	exit := -1
	c.Typed = map[string]string{}
	parser := kong.Must(&all,
		kong.Name("ferry"),
		kong.Description("A file-transfer service: upload with one HTTP call, the recipient gets the link."),
		kong.Writers(c.Out.Raw, c.Err.Raw), // kong asks a terminal for its width, and prints only help
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
		kong.BindToProvider(settings),
		kong.Resolvers(kong.ResolverFunc(fromFile)),
		kong.KindMapper(reflect.String, kong.MapperFunc(verbatim)),
		kong.PostBuild(addHelp),
		vars(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case len(args) == 1 && args[0] == "--version":
		args = []string{"version"}
	case len(args) > 0 && args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help was answered
		return exit
	}
	if err != nil {
		c.Tell("ferry: %s\nTry %s --help.\n", cli.Explain(err), meant(err))
		return cli.ExitUsage
	}
	for _, at := range command.Path {
		if at.Flag != nil && !at.Flag.IsBool() {
			c.Typed["--"+at.Flag.Name] = typedAfter("--"+at.Flag.Name, args)
		}
	}
	if group := command.Selected().ClosestGroup().Key; group != aboutThis {
		err = checkNames(c, settingNames(parser.Model.Node), os.Environ(), group == operators)
	}
	if err == nil {
		err = operator.FromStack(ctx, command)
	}
	if err == nil {
		err = command.Run(parser)
	}
	if err != nil {
		if ctx.Err() != nil &&
			(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
			err = cli.ErrInterrupted
		}
		err = operator.Known(err)
		c.Tell("ferry: %s\n", c.Explain(err))
		return cli.ExitCode(err)
	}
	return cli.ExitOK
}

// meant returns the command that has a wrong argument.
func meant(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context.Selected() == nil {
		return "ferry"
	}
	return "ferry " + wrong.Context.Selected().Path()
}

// typedAfter returns what follows a flag in the arguments, for each time that it occurs.
func typedAfter(flag string, args []string) string {
	var all []string
	for i, arg := range args {
		value, joined := strings.CutPrefix(arg, flag+"=")
		switch {
		case joined:
			all = append(all, value)
		case arg == flag && i+1 < len(args):
			all = append(all, args[i+1])
		}
	}
	return strings.Join(all, ", ")
}

// verbatim reads a text unchanged. kong itself would convert it to UTF-8, but file paths may
// contain other bytes.
func verbatim(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(t.String())
	}
	return err
}

// operators is the group of the commands for people who run a service, and aboutThis the group of
// the commands that read no settings.
const operators, aboutThis = "Service:", "This program:"

type commands struct {
	Login   client.Login   `cmd:"" group:"Files:" help:"Log in to a service, for the commands below."`
	Logout  client.Logout  `cmd:"" group:"Files:" help:"End the login."`
	Up      client.Up      `cmd:"" group:"Files:" help:"Upload files, folders or standard input."`
	Ls      client.Ls      `cmd:"" group:"Files:" help:"List your files."`
	Show    client.Show    `cmd:"" group:"Files:" help:"Show everything about a file, including recipients and downloads."`
	Get     client.Get     `cmd:"" group:"Files:" help:"Download files."`
	Share   client.Share   `cmd:"" group:"Files:" help:"Send a stored file to more people, or make one more link to it."`
	Link    client.Link    `cmd:"" group:"Files:" help:"List, change and end the links of a file."`
	Request client.Request `cmd:"" group:"Files:" help:"Ask for files, with links that let anyone send you some."`
	Set     client.Set     `cmd:"" group:"Files:" help:"Rename a file, or change when it leaves your area."`
	Rm      client.Rm      `cmd:"" group:"Files:" help:"Delete files: they stay in the backup area for a while."`
	Restore client.Restore `cmd:"" group:"Files:" help:"Bring files back from the backup area."`
	Uploads client.Uploads `cmd:"" group:"Files:" help:"List or abort uploads in progress."`
	Me      client.Me      `cmd:"" group:"Files:" help:"Show your account, its quota and its limits."`
	Passwd  client.Passwd  `cmd:"" group:"Files:" help:"Change the password."`
	Token   client.Token   `cmd:"" group:"Files:" help:"Make, list and end tokens for programs, and logins."`

	Serve  serving.Command `cmd:"" group:"Service:" help:"Run the whole service in this process."`
	Health serving.Health  `cmd:"" group:"Service:" help:"Check whether a service works."`
	User   operator.User   `cmd:"" group:"Service:" help:"Create, show and change users."`
	Inbox  operator.Inbox  `cmd:"" group:"Service:" help:"Show the mail and text messages that were sent on this machine."`
	Outbox operator.Outbox `cmd:"" group:"Service:" help:"Show, retry and cancel notices, and see who gets no mail."`
	Sweep  operator.Sweep  `cmd:"" group:"Service:" help:"Move or remove expired files now, and clean up after crashes."`
	Key    operator.Key    `cmd:"" group:"Service:" help:"List, rotate and revoke the key of all links."`
	Check  operator.Check  `cmd:"" group:"Service:" help:"Compare records with files, and name what is wrong."`

	Backup      operator.Backup      `cmd:"" group:"Service:" help:"Copy all data elsewhere, even while the service runs."`
	RestoreData operator.RestoreData `cmd:"" group:"Service:" help:"Restore a backup, or one file of it to existing data."`

	Completion completionCommand `cmd:"" group:"This program:" help:"Print a completion script for a shell."`
	Complete   completeCommand   `cmd:"" group:"This program:" hidden:"" help:"Print what can be typed next, for a shell."`
	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version, the commit and its date."`
}

type versionCommand struct{}

func (versionCommand) Run(out cli.Console) error {
	info, _ := debug.ReadBuildInfo()
	return out.Print("%s\n", version(info))
}

// version describes this program in one line, with what the Go command recorded: the
// version, which is the commit's tag if it has one, and the commit with its date.
func version(info *debug.BuildInfo) string {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	known := map[string]string{}
	for _, s := range info.Settings {
		known[s.Key] = s.Value
	}
	commit := cmp.Or(known["vcs.revision"], "unknown")
	if known["vcs.modified"] == "true" {
		commit += " with changes"
	}
	return fmt.Sprintf("ferry %s, commit %s, date %s, interface %s, data format %d, %s %s/%s",
		cmp.Or(
			info.Main.Version,
			"(devel)",
		), commit, cmp.Or(known["vcs.time"], "unknown"), envelope.APIVersion,
		table.Format, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// vars are what the tags of flags name.
func vars() kong.Vars {
	tags := texts.Tags()
	last := len(tags) - 1
	return kong.Vars{
		"usual_data": operator.UsualData,
		"languages":  strings.Join(tags[:last], ", ") + " or " + tags[last],
	}
}

// fromFile reads a setting NAME from the file that the variable NAME_FILE names, so that
// a secret need not be in the environment.
func fromFile(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if file := os.Getenv(name + "_FILE"); file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s_FILE: %w", name, err)
			}
			return strings.TrimSpace(string(text)), nil
		}
	}
	return nil, nil
}

// settingNames returns the names of all settings.
func settingNames(root *kong.Node) []string {
	known := []string{ // settings without a flag: the client's, a function's
		"FERRY_PASSWORD", "FERRY_LINK_PASSWORD", "FERRY_LINK_PASSWORD_FILE",
		"FERRY_MOVER", "FERRY_MOVER_FILE",
	}
	for _, n := range walk(root) {
		for _, f := range n.Flags {
			for _, name := range f.Envs {
				known = append(known, name, name+"_FILE")
			}
		}
	}
	return known
}

// checkNames warns about each variable that looks like a setting but is not one. An operator's
// command refuses a variable that differs from a setting by at most two letters.
func checkNames(c cli.Console, known, environ []string, refuses bool) error {
	if os.Getenv("FERRY_LOG_FILE") != "" {
		return cli.Fail(
			cli.ExitSettings,
			"FERRY_LOG_FILE is not a setting: the log goes to standard error, "+
				"which you can redirect to a file with 2> FILE",
		)
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "FERRY_") ||
			slices.Contains(known, name) ||
			isOfKubernetes(name, value) {
			continue
		}
		wrong := name + " is not a setting"
		like := similar(name, known)
		if like != "" {
			wrong += "; did you mean " + like + "?"
		}
		if like != "" && refuses {
			return cli.Fail(cli.ExitSettings, "%s", wrong)
		}
		c.Tell("ferry: warning: %s\n", wrong)
	}
	return nil
}

// isOfKubernetes reports whether a variable is one that Kubernetes sets for a service named ferry.
func isOfKubernetes(name, value string) bool {
	return strings.HasPrefix(name, "FERRY_SERVICE_") ||
		strings.HasPrefix(name, "FERRY_PORT_") ||
		name == "FERRY_PORT" && strings.Contains(value, "://")
}

// similar returns the nearest of the known names, or "".
func similar(name string, known []string) string {
	for n := 1; n <= 2; n++ {
		near := func(k string) bool { // n letters must be a small part of the name
			return len(strings.TrimSuffix(k, "_FILE")) >= len("FERRY_")+3*n &&
				param.Within(name, k, n)
		}
		if i := slices.IndexFunc(known, near); i >= 0 {
			return known[i]
		}
	}
	return ""
}

// settings reads the command's flags under the names of their environment variables.
func settings(k *kong.Context) (service.Settings, error) {
	values, flags := map[string]string{}, []string{}
	for _, f := range k.Flags() {
		for _, name := range f.Envs {
			values[name] = fmt.Sprint(k.FlagValue(f))
			flags = append(flags, name+"=", "--"+f.Name+" or "+name+"=")
		}
	}
	s, err := service.ReadSettings(func(name string) string { return values[name] })
	if err != nil {
		err = cli.Fail(cli.ExitSettings, "%s", strings.NewReplacer(flags...).
			Replace(err.Error()))
	}
	return s, err
}
