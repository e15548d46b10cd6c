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
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/api"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/notify"
	"ferry/shared/table/dynamo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to end; a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], console{Program: os.Args[0], In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// console is where a command reads and prints.
type console struct {
	Program string // as it was called
	In      io.Reader
	Out     io.Writer // for results
	Err     io.Writer // for everything else
}

// run runs the command that the arguments name and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	var cli commands
	exit := -1
	parser := kong.Must(&cli,
		kong.Name("ferry"),
		kong.Description("A file-transfer service: upload with one HTTP call, the recipient gets the link."),
		kong.Writers(c.Out, c.Err),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
		kong.BindToProvider(settings),
		kong.Resolvers(kong.ResolverFunc(fromFile)),
		kong.UsageOnError(),
		kong.Vars{"usual_data": usualData},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	switch {
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
		fmt.Fprintf(c.Err, "ferry: %v\nTry ferry --help.\n", err)
		return exitUsage
	}
	if err := command.Run(parser); err != nil {
		if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
			err = errInterrupted
		}
		fmt.Fprintln(c.Err, "ferry:", explain(err))
		return exitCode(err)
	}
	return exitOK
}

type commands struct {
	Login   loginCommand   `cmd:"" group:"Files:" help:"Log in to a service, for the commands below."`
	Logout  logoutCommand  `cmd:"" group:"Files:" help:"End the login."`
	Up      upCommand      `cmd:"" group:"Files:" help:"Upload files, folders or standard input."`
	Ls      lsCommand      `cmd:"" group:"Files:" help:"List your files."`
	Show    showCommand    `cmd:"" group:"Files:" help:"Show everything about a file: recipients and downloads included."`
	Get     getCommand     `cmd:"" group:"Files:" help:"Download files."`
	Rm      rmCommand      `cmd:"" group:"Files:" help:"Delete files: they stay in the backup area for a while."`
	Restore restoreCommand `cmd:"" group:"Files:" help:"Bring files back from the backup area."`
	Uploads uploadsCommand `cmd:"" group:"Files:" help:"List or abort uploads in progress."`
	Me      meCommand      `cmd:"" group:"Files:" help:"Show your account, its quota and its limits."`
	Passwd  passwdCommand  `cmd:"" group:"Files:" help:"Change the password."`

	Serve  serveCommand   `cmd:"" group:"Service:" help:"Run the whole service in this process."`
	Health healthCommand  `cmd:"" group:"Service:" help:"Check whether a service works."`
	User   userCommands   `cmd:"" group:"Service:" help:"Create, show and change users."`
	Inbox  inboxCommand   `cmd:"" group:"Service:" help:"Show the mail and text messages that were sent on this machine."`
	Outbox outboxCommands `cmd:"" group:"Service:" help:"Show, retry and cancel notices, and see who gets no mail."`
	Sweep  sweepCommand   `cmd:"" group:"Service:" help:"Move or remove expired files now, and clean up after crashes."`
	Check  checkCommand   `cmd:"" group:"Service:" help:"Compare records with files, and name what is wrong."`

	Backup      backupCommand      `cmd:"" group:"Service:" help:"Copy all data of this machine to another directory, even while the service runs."`
	RestoreData restoreDataCommand `cmd:"" group:"Service:" help:"Restore a backup to an empty directory."`

	Completion completionCommand `cmd:"" group:"This program:" help:"Print a completion script for a shell."`
	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version, the commit and its date."`
}

// Help is shown below the list of commands.
func (commands) Help() string { return exitCodes }

type versionCommand struct{}

func (versionCommand) Run(out console) error {
	_, err := fmt.Fprintln(out.Out, version())
	return err
}

// version describes this program in one line.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf tells what the Go command has noted: the version, which is the commit's tag if
// it has one, and the commit with its date.
func versionOf(info *debug.BuildInfo) string {
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
	return fmt.Sprintf("ferry %s, commit %s, date %s, interface %s, %s %s/%s",
		cmp.Or(info.Main.Version, "(devel)"), commit, cmp.Or(known["vcs.time"], "unknown"), envelope.APIVersion,
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// usualData is the default of --data.
const usualData = "./.ferry"

// store says where the data is: on this machine, or in the cloud.
type store struct {
	Data         string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR" help:"Data directory (default ${default})."`
	Table        string `env:"FERRY_TABLE" placeholder:"NAME" help:"DynamoDB table to use instead, with the AWS credentials of the environment."`
	FilesBucket  string `env:"FERRY_FILES_BUCKET" placeholder:"NAME" help:"S3 bucket of the user area, with --table."`
	BackupBucket string `env:"FERRY_BACKUP_BUCKET" placeholder:"NAME" help:"S3 bucket of the backup area, with --table."`
	KeyParameter string `env:"FERRY_KEY_PARAMETER" placeholder:"NAME" help:"SSM parameter of the link key, with --table."`
	Events       bool   `env:"FERRY_EVENTS" help:"With --table: record events, for the stack's topic."`
}

// inCloud reports whether the data is in a stack.
func (s store) inCloud() bool { return s.Table != "" }

// grace returns how old an object without a record must be to be removed. On this machine
// that is longer than the time from a file's appearance on disk to its record: the first
// file of a form waits for the last one, which may come slowly. On S3 it also covers an
// upload in parts, whose age counts from its start.
func (s store) grace() time.Duration {
	if s.inCloud() {
		return 8 * 24 * time.Hour
	}
	return 25 * time.Hour
}

// use calls open for data that must exist.
func (s store) use(ctx context.Context, f func(*api.Ports) error, ports ...lambda.Opener) error {
	return s.open(ctx, api.Settings{}, local.Options{Existing: true}, f, ports...)
}

// open opens the data, runs f on it, and closes it. On a stack it opens only the table
// and the given ports.
func (s store) open(ctx context.Context, set api.Settings, o local.Options, f func(*api.Ports) error, ports ...lambda.Opener) (err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if s.inCloud() {
		set.Events = s.Events
		p, err := s.openStack(ctx, set, ports...)
		if err != nil {
			return &coded{exitSettings, err}
		}
		p.Log = o.Log
		return f(p)
	}
	data, err := local.Open(s.Data, set, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if data.Ports.Events, err = notify.Listening(ctx, data.Table); err != nil {
		return err
	}
	return f(data.Ports)
}

// openStack opens ports on the data of a stack. The SDK reads its own
// configuration: files, and variables such as AWS_PROFILE, AWS_REGION and
// AWS_ENDPOINT_URL.
func (s store) openStack(ctx context.Context, settings api.Settings, ports ...lambda.Opener) (*api.Ports, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	flags := map[string]string{
		"FERRY_TABLE": s.Table, "FERRY_FILES_BUCKET": s.FilesBucket,
		"FERRY_BACKUP_BUCKET": s.BackupBucket, "FERRY_KEY_PARAMETER": s.KeyParameter,
	}
	cloud := &lambda.Cloud{Config: cfg, Getenv: func(name string) string { return cmp.Or(flags[name], os.Getenv(name)) }}
	p, err := cloud.Ports(settings, append(ports, lambda.Table(dynamo.Open))...)
	if err == nil {
		err = cloud.Begin(ctx)
	}
	return p, err
}

// filePorts are what a command on files needs besides the table.
func filePorts() []lambda.Opener { return []lambda.Opener{lambda.Blobs(s3.Open), lambda.LinkKey} }

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

// settings reads the command's flags under the names of their environment variables.
func settings(k *kong.Context) (api.Settings, error) {
	values, flags := map[string]string{}, []string{}
	for _, f := range k.Flags() {
		for _, name := range f.Envs {
			values[name] = fmt.Sprint(k.FlagValue(f))
			flags = append(flags, name+"=", "--"+f.Name+" or "+name+"=")
		}
	}
	s, err := api.ReadSettings(func(name string) string { return values[name] })
	if err != nil {
		err = &coded{exitSettings, errors.New(strings.NewReplacer(flags...).Replace(err.Error()))}
	}
	return s, err
}
