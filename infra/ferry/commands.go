package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"ferry/shared/boot"
	"ferry/shared/boot/local"
	"ferry/shared/endpoint"
	"ferry/shared/envelope"
	"ferry/shared/events"
	"ferry/shared/service"
)

type commands struct {
	Login   loginCommand   `cmd:"" group:"Files:" help:"Log in to a service, for the commands below."`
	Logout  logoutCommand  `cmd:"" group:"Files:" help:"End the login."`
	Up      upCommand      `cmd:"" group:"Files:" help:"Upload files, folders or standard input."`
	Ls      lsCommand      `cmd:"" group:"Files:" help:"List your files."`
	Show    showCommand    `cmd:"" group:"Files:" help:"Show all about a file: who was told of it, and the downloads."`
	Get     getCommand     `cmd:"" group:"Files:" help:"Download files."`
	Rm      rmCommand      `cmd:"" group:"Files:" help:"Delete files: they stay in the backup area for a while."`
	Restore restoreCommand `cmd:"" group:"Files:" help:"Bring files back from the backup area."`
	Uploads uploadsCommand `cmd:"" group:"Files:" help:"List or end uploads that are under way."`
	Passwd  passwdCommand  `cmd:"" group:"Files:" help:"Change the password."`

	Serve  serveCommand   `cmd:"" group:"Service:" help:"Run the whole service in this process."`
	User   userCommands   `cmd:"" group:"Service:" help:"Create, show and change users."`
	Inbox  inboxCommand   `cmd:"" group:"Service:" help:"Show the mail and text messages that were sent on this machine."`
	Outbox outboxCommands `cmd:"" group:"Service:" help:"Show, retry and cancel notifications, and see who gets no mail."`
	Sweep  sweepCommand   `cmd:"" group:"Service:" help:"Move and remove expired files now, and leftovers of crashes."`

	Backup      backupCommand      `cmd:"" group:"Service:" help:"Copy all data of this machine to another directory, even while the service runs."`
	RestoreData restoreDataCommand `cmd:"" group:"Service:" help:"Restore the data of a backup to an empty directory."`

	Invoke invokeCommand `cmd:"" group:"Development:" help:"Build a Lambda function, run it as Lambda does, and send it an event."`

	Completion completionCommand `cmd:"" group:"This program:" help:"Print the completion for a shell."`
	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version."`
}

// Help is shown below the list of commands.
func (commands) Help() string { return exitCodes }

// usualData is the default of --data.
const usualData = "./.ferry"

// store says where the data are: on this machine, or in the cloud.
type store struct {
	Data         string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR" help:"Directory of the data (default ${default})."`
	Table        string `env:"FERRY_TABLE" placeholder:"NAME" help:"DynamoDB table to use instead, with the AWS credentials of the environment."`
	FilesBucket  string `env:"FERRY_FILES_BUCKET" placeholder:"NAME" help:"S3 bucket of the user area, with --table."`
	BackupBucket string `env:"FERRY_BACKUP_BUCKET" placeholder:"NAME" help:"S3 bucket of the backup area, with --table."`
	KeyParameter string `env:"FERRY_KEY_PARAMETER" placeholder:"NAME" help:"SSM parameter of the link key, with --table."`
	Events       bool   `env:"FERRY_EVENTS" help:"With --table: record events, for the stack's topic."`
}

// inCloud tells whether the data are the stack's.
func (s store) inCloud() bool { return s.Table != "" }

// use is open for data that exist, with the table and the given ports.
func (s store) use(ctx context.Context, f func(*endpoint.Ports) error, ports ...boot.Port) error {
	return s.open(ctx, endpoint.Settings{}, local.Options{Existing: true}, f, append(ports, boot.Table)...)
}

// open opens the data, runs f on them, and closes them. Of a stack it opens only
// the given ports.
func (s store) open(ctx context.Context, set endpoint.Settings, o local.Options, f func(*endpoint.Ports) error, ports ...boot.Port) (err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if s.inCloud() {
		set.Events = s.Events
		p, err := boot.OpenPorts(ctx, set, s.getenv, ports...)
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
	if data.Ports.Events, err = events.Noted(ctx, data.Table); err != nil {
		return err
	}
	return f(data.Ports)
}

// getenv is os.Getenv with the flags in it.
func (s store) getenv(name string) string {
	flags := map[string]string{
		"FERRY_TABLE": s.Table, "FERRY_FILES_BUCKET": s.FilesBucket,
		"FERRY_BACKUP_BUCKET": s.BackupBucket, "FERRY_KEY_PARAMETER": s.KeyParameter,
	}
	return cmp.Or(flags[name], os.Getenv(name))
}

// values are the flags of the command, by the names of their variables.
func values(k *kong.Context) map[string]string {
	all := map[string]string{}
	for _, f := range k.Flags() {
		for _, name := range f.Envs {
			all[name] = fmt.Sprint(k.FlagValue(f))
		}
	}
	return all
}

// settings reads the settings as they are read from the environment.
func settings(values map[string]string) (endpoint.Settings, error) {
	s, err := boot.Settings(func(name string) string { return values[name] })
	if err != nil {
		return s, &coded{exitSettings, err}
	}
	return s, nil
}

type retention struct {
	KeepDays   string `env:"FERRY_KEEP_DAYS" placeholder:"30" help:"Days that a file stays in the user area; 0 is for ever."`
	BackupDays string `env:"FERRY_BACKUP_DAYS" placeholder:"90" help:"Days that it stays in the backup area after that; 0 is for ever."`
}

type sweepCommand struct {
	store
	Retention retention `embed:""`
}

func (c sweepCommand) Run(ctx context.Context, k *kong.Context, out console) error {
	set, err := settings(values(k))
	if err != nil {
		return err
	}
	grace := graceLocal
	if c.inCloud() {
		grace = graceCloud
	}
	return c.open(ctx, set, local.Options{Existing: true}, func(p *endpoint.Ports) error {
		s, err := service.New(p, service.Options{From: "ferry@localhost", Grace: grace})
		if err != nil {
			return err
		}
		r, err := s.Sweep(ctx)
		fmt.Fprintf(out.Out, "%d objects seen: %d files moved to the backup area, %d removed for good, %d leftovers removed, %d failed\n",
			r.Seen, r.Moved, r.Purged, r.Orphans, r.Failed)
		return err
	}, boot.Table, boot.Blobs, boot.LinkKey)
}

type versionCommand struct{}

func (versionCommand) Run(out console) error {
	revision := "unknown revision"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(out.Out, "ferry, interface %s, %s\n", envelope.APIVersion, revision)
	return err
}
