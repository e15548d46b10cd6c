// Command ferry runs Ferry on one machine, operates it there or in the cloud, and
// is the client for people. See ferry --help.
//
// It imports the client, and the packages that the service's commands need. Start
// reading at the type commands; each file holds a few of them.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"

	"ferry/shared/api/param"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/backup"
	"ferry/shared/boot/local"
	"ferry/shared/bundle"
	"ferry/shared/client"
	"ferry/shared/envelope"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as with nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal asks to end; a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], console{Program: os.Args[0], In: os.Stdin, Out: screen{os.Stdout}, Err: screen{os.Stderr}}))
}

// console is where a command reads and prints.
type console struct {
	Program string // as it was invoked
	In      io.Reader
	Out     screen // for results
	Err     screen // for everything else

	Typed map[string]string // what was typed after each flag, for errors about it
}

// print prints a result.
func (c console) print(format string, values ...any) error {
	_, err := fmt.Fprintf(c.Out, format, values...)
	return err
}

// tell prints anything that is not a result.
func (c console) tell(format string, values ...any) { fmt.Fprintf(c.Err, format, values...) }

// screen is where text is printed. No text can control a terminal, whoever wrote it: of the
// characters that could, only line ends and tabs get through. What goes to raw directly is not
// text: the bytes of files, and what Ferry draws. Each write contains whole characters.
type screen struct{ raw io.Writer }

// Write implements io.Writer.
func (s screen) Write(text []byte) (int, error) {
	_, err := io.WriteString(s.raw, clean(string(text), "\n\t"))
	return len(text), err
}

// controls reports whether a character could control a terminal, or reorder what it shows.
func controls(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// printable cleans a text of one line, so that it cannot begin another line either.
func printable(text string) string { return clean(text, "") }

// clean replaces everything that could control a terminal, except the characters in kept.
func clean(text, kept string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) && !strings.ContainsRune(kept, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// run runs the command that the arguments name and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	var cli commands
	exit := -1
	c.Typed = map[string]string{}
	parser := kong.Must(&cli,
		kong.Name("ferry"),
		kong.Description("A file-transfer service: upload with one HTTP call, the recipient gets the link."),
		kong.Writers(c.Out.raw, c.Err.raw), // kong asks a terminal for its width, and prints only help
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
		kong.BindToProvider(settings),
		kong.Resolvers(kong.ResolverFunc(fromFile)),
		kong.KindMapper(reflect.String, kong.MapperFunc(verbatim)),
		kong.PostBuild(addHelp),
		kong.Vars{"usual_data": usualData},
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
		c.tell("ferry: %s\nTry %s --help.\n", explain(err), meant(err))
		return exitUsage
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
		err = fromStack(ctx, command)
	}
	if err == nil {
		err = command.Run(parser)
	}
	if err != nil {
		if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
			err = errInterrupted
		}
		c.tell("ferry: %s\n", c.explain(err))
		return exitCode(err)
	}
	return exitOK
}

// meant returns the command that has a wrong argument.
func meant(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context.Selected() == nil {
		return "ferry"
	}
	return "ferry " + wrong.Context.Selected().Path()
}

// explain is like the function explain, but adds what was typed after a flag that the error names.
func (c console) explain(err error) string {
	text := explain(err)
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return text
	}
	for flag := range strings.SplitSeq(flagsOf(e.Parameter), ": ") {
		if value := c.Typed[flag]; value != "" {
			text = strings.Replace(text, flag+": ", flag+" "+printable(value)+": ", 1)
		}
	}
	return text
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
	Login   loginCommand    `cmd:"" group:"Files:" help:"Log in to a service, for the commands below."`
	Logout  logoutCommand   `cmd:"" group:"Files:" help:"End the login."`
	Up      upCommand       `cmd:"" group:"Files:" help:"Upload files, folders or standard input."`
	Ls      lsCommand       `cmd:"" group:"Files:" help:"List your files."`
	Show    showCommand     `cmd:"" group:"Files:" help:"Show everything about a file, including recipients and downloads."`
	Get     getCommand      `cmd:"" group:"Files:" help:"Download files."`
	Share   shareCommand    `cmd:"" group:"Files:" help:"Send a stored file to more people, or make one more link to it."`
	Link    linkCommands    `cmd:"" group:"Files:" help:"List, change and end the links of a file."`
	Request requestCommands `cmd:"" group:"Files:" help:"Ask for files, with links that let anyone send you some."`
	Set     setCommand      `cmd:"" group:"Files:" help:"Rename a file, or change when it leaves your area."`
	Rm      rmCommand       `cmd:"" group:"Files:" help:"Delete files: they stay in the backup area for a while."`
	Restore restoreCommand  `cmd:"" group:"Files:" help:"Bring files back from the backup area."`
	Uploads uploadsCommand  `cmd:"" group:"Files:" help:"List or abort uploads in progress."`
	Me      meCommand       `cmd:"" group:"Files:" help:"Show your account, its quota and its limits."`
	Passwd  passwdCommand   `cmd:"" group:"Files:" help:"Change the password."`
	Token   tokenCommands   `cmd:"" group:"Files:" help:"Make, list and end tokens for programs, and logins."`

	Serve  serveCommand   `cmd:"" group:"Service:" help:"Run the whole service in this process."`
	Health healthCommand  `cmd:"" group:"Service:" help:"Check whether a service works."`
	User   userCommands   `cmd:"" group:"Service:" help:"Create, show and change users."`
	Inbox  inboxCommand   `cmd:"" group:"Service:" help:"Show the mail and text messages that were sent on this machine."`
	Outbox outboxCommands `cmd:"" group:"Service:" help:"Show, retry and cancel notices, and see who gets no mail."`
	Sweep  sweepCommand   `cmd:"" group:"Service:" help:"Move or remove expired files now, and clean up after crashes."`
	Key    keyCommands    `cmd:"" group:"Service:" help:"List, rotate and revoke the key of all links."`
	Check  checkCommand   `cmd:"" group:"Service:" help:"Compare records with files, and name what is wrong."`

	Backup      backupCommand      `cmd:"" group:"Service:" help:"Copy all data elsewhere, even while the service runs."`
	RestoreData restoreDataCommand `cmd:"" group:"Service:" help:"Restore a backup, or one file of it to existing data."`

	Completion completionCommand `cmd:"" group:"This program:" help:"Print a completion script for a shell."`
	Complete   completeCommand   `cmd:"" group:"This program:" hidden:"" help:"Print what can be typed next, for a shell."`
	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version, the commit and its date."`
}

type versionCommand struct{}

func (versionCommand) Run(out console) error {
	info, _ := debug.ReadBuildInfo()
	return out.print("%s\n", version(info))
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
		cmp.Or(info.Main.Version, "(devel)"), commit, cmp.Or(known["vcs.time"], "unknown"), envelope.APIVersion,
		table.Format, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// usualData is the default of --data.
const usualData = "./.ferry"

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
func checkNames(c console, known, environ []string, refuses bool) error {
	if os.Getenv("FERRY_LOG_FILE") != "" {
		return fail(exitSettings, "FERRY_LOG_FILE is not a setting: the log goes to standard error, "+
			"which you can redirect to a file with 2> FILE")
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "FERRY_") || slices.Contains(known, name) || isOfKubernetes(name, value) {
			continue
		}
		wrong := name + " is not a setting"
		like := similar(name, known)
		if like != "" {
			wrong += "; did you mean " + like + "?"
		}
		if like != "" && refuses {
			return fail(exitSettings, "%s", wrong)
		}
		c.tell("ferry: warning: %s\n", printable(wrong))
	}
	return nil
}

// isOfKubernetes reports whether a variable is one that Kubernetes sets for a service named ferry.
func isOfKubernetes(name, value string) bool {
	return strings.HasPrefix(name, "FERRY_SERVICE_") || strings.HasPrefix(name, "FERRY_PORT_") ||
		name == "FERRY_PORT" && strings.Contains(value, "://")
}

// similar returns the nearest of the known names, or "".
func similar(name string, known []string) string {
	for n := 1; n <= 2; n++ {
		near := func(k string) bool { // n letters must be a small part of the name
			return len(strings.TrimSuffix(k, "_FILE")) >= len("FERRY_")+3*n && param.Within(name, k, n)
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
		err = fail(exitSettings, "%s", strings.NewReplacer(flags...).Replace(err.Error()))
	}
	return s, err
}

// The exit codes are those of BSD's sysexits.
const (
	exitOK         = 0
	exitOther      = 1
	exitUsage      = 64
	exitDamaged    = 65
	exitNoFile     = 66
	exitUnknown    = 67
	exitPort       = 69
	exitExists     = 73
	exitFull       = 74
	exitBusy       = 75
	exitRefused    = 76
	exitPermission = 77
	exitSettings   = 78
	exitInterrupt  = 130 // as in shells
)

// errInterrupted means Ctrl-C.
var errInterrupted = errors.New("interrupted")

// pausing adds how to resume a transfer that Ctrl-C or the network has interrupted, if that is
// possible: a pipe cannot be resumed.
func pausing(ctx context.Context, err error, pipe bool) error {
	interrupted := err != nil && ctx.Err() != nil
	if interrupted {
		err = errInterrupted
	}
	if !pipe && (interrupted || client.IsNetwork(err)) {
		err = fmt.Errorf("%w; run the same command again to resume", err)
	}
	return err
}

// coded is an error with its exit code.
type coded struct {
	code int
	error
}

func (e *coded) Unwrap() error { return e.error }

// withCode gives an error an exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code, err}
}

// fail returns an error with an exit code.
func fail(code int, format string, values ...any) error {
	return &coded{code, fmt.Errorf(format, values...)}
}

// usage returns an error about what the user typed.
func usage(format string, values ...any) error { return fail(exitUsage, format, values...) }

func exitCode(err error) int {
	if c, ok := errors.AsType[*coded](err); ok {
		return c.code
	}
	_, badBundle := errors.AsType[*bundle.Error](err)
	is := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch {
	case client.IsNetwork(err):
		return exitPort
	case badBundle:
		return exitDamaged
	case is(errInterrupted):
		return exitInterrupt
	case is(client.ErrNoLogin, client.ErrPassword):
		return exitPermission
	case is(client.ErrDigest, client.ErrLost, sqlite.ErrDamaged, sqlite.ErrOlder, sqlite.ErrNewer,
		local.ErrNoTable, local.ErrNoKey, local.ErrKey, backup.ErrForeign,
		table.ErrUnreadable, auth.ErrDamaged, table.ErrFormat):
		return exitDamaged
	case is(client.ErrNotFound, notify.ErrUnknown, backup.ErrNoFile):
		return exitNoFile
	case is(client.ErrExists, backup.ErrHasData, backup.ErrTaken):
		return exitExists
	case is(backup.ErrInside):
		return exitUsage
	case is(auth.ErrUnknownUser, client.ErrUnknownUser):
		return exitUnknown
	case is(table.ErrFull, blob.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO):
		return exitFull
	case is(client.ErrChanged, notify.ErrClaimed, table.ErrBusy):
		return exitBusy
	case is(client.ErrAnswer, client.ErrUnnamed, notify.ErrSent, notify.ErrFailed):
		return exitRefused
	case is(fs.ErrPermission, syscall.EROFS):
		return exitPermission
	case is(local.ErrNoData, fs.ErrNotExist, syscall.ENOTDIR): // not usable as a data directory
		return exitSettings
	}
	switch client.StatusOf(err) {
	case 0:
		return exitOther
	case 401, 403:
		return exitPermission
	case 507:
		return exitFull
	case 429, 500, 502, 503, 504:
		return exitBusy
	}
	return exitRefused
}

// explain returns the one sentence that the user reads. It is one line, whatever a service says.
func explain(err error) string {
	return printable(strings.ReplaceAll(sentence(err), "\n", "; "))
}

func sentence(err error) string {
	var path *os.PathError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &path) && strings.HasSuffix(err.Error(), path.Error()):
		return strings.TrimSuffix(err.Error(), path.Error()) + path.Path + ": " + path.Err.Error()
	case errors.Is(err, local.ErrNoData):
		return err.Error() + "; say where it is with --data or FERRY_DATA"
	case errors.Is(err, backup.ErrHasData):
		return err.Error() + "; name another directory with --data"
	case errors.Is(err, sqlite.ErrDamaged): // it may be wrapped twice: say it once
		text, kind := err.Error(), sqlite.ErrDamaged.Error()
		return text[:strings.Index(text, kind)] + text[strings.LastIndex(text, kind):]
	}
	_, explained := errors.AsType[*failure](err)
	if e, ok := errors.AsType[*client.Error](err); ok && !explained {
		return flagsOf(e.Parameter) + err.Error()
	}
	return err.Error()
}

// flagsOf names the flags that set parameters of a request, each followed by a colon.
func flagsOf(parameters string) (flags string) {
	for name := range strings.SplitSeq(parameters, ", ") {
		if flag := map[string]string{
			"c": "sms", "d": "to", "i": "message", "lang": "lang", "m": "mail", "notify": "notify", "partSize": "part-size",
			"expires": "expires", "downloads": "downloads", "password": "password", "name": "name",
			"title": "title", "message": "message", "bytes": "bytes", "files": "files", "by": "by",
		}[name]; flag != "" {
			flags += "--" + flag + ": "
		}
	}
	return flags
}

// failures collects the errors of a command on several things, some of which may
// succeed.
type failures struct {
	out   console
	meter *meter // drawn at the same time; may be nil
	first error  // the caller prints it
}

// add keeps the first error, and prints the others.
func (f *failures) add(name string, err error) {
	switch {
	case err == nil:
	case f.first == nil:
		f.first = &failure{name, err}
	default:
		f.meter.print(f.out.Err, "ferry: %s", f.out.explain(&failure{name, err}))
	}
}

// each calls f for each name until ctx ends. It continues after errors: it returns the first and
// prints the others. Unless done is empty, it is printed for each success, with the name filled in.
func each(ctx context.Context, out console, names []string, done string, f func(name string) error) error {
	failed := failures{out: out}
	return failed.each(ctx, names, func(name string) error {
		err := f(name)
		if err == nil && done != "" {
			out.tell(done+"\n", printable(name))
		}
		return err
	})
}

// each is like the function each, but prints the failures beside a meter.
func (f *failures) each(ctx context.Context, names []string, do func(name string) error) error {
	for _, name := range names {
		err := ctx.Err()
		if err != nil {
			return cmp.Or(f.first, err)
		}
		f.add(name, do(name))
	}
	return f.first
}

// report prints the results as JSON, if wanted, and returns the first failure.
func report(out console, asJSON bool, results any, failed error) error {
	if asJSON {
		return cmp.Or(printJSON(out, results), failed)
	}
	return failed
}

// failure is the error of one of several things.
type failure struct {
	name string
	err  error
}

// Error names the thing, once.
func (f *failure) Error() string {
	text, name := explain(f.err), cmp.Or(printable(f.name), `""`)
	if strings.HasPrefix(text, name+": ") || strings.HasSuffix(text, ": "+name) {
		return text
	}
	return name + ": " + text
}

func (f *failure) Unwrap() error { return f.err }
