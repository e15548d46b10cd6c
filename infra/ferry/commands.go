package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"ferry/shared/boot"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"

	"ferry/shared/notify"

	"ferry/shared/api"
)

type commands struct {
	Login   loginCommand   `cmd:"" group:"Files:" help:"Log in to a service, for the commands below."`
	Logout  logoutCommand  `cmd:"" group:"Files:" help:"End the login."`
	Up      upCommand      `cmd:"" group:"Files:" help:"Upload files, folders or standard input."`
	Ls      lsCommand      `cmd:"" group:"Files:" help:"List your files."`
	Show    showCommand    `cmd:"" group:"Files:" help:"Show all that is known of a file: who was told of it, and the downloads."`
	Get     getCommand     `cmd:"" group:"Files:" help:"Download files."`
	Rm      rmCommand      `cmd:"" group:"Files:" help:"Delete files: they stay in the backup area for a while."`
	Restore restoreCommand `cmd:"" group:"Files:" help:"Bring files back from the backup area."`
	Uploads uploadsCommand `cmd:"" group:"Files:" help:"List or end uploads that are under way."`
	Passwd  passwdCommand  `cmd:"" group:"Files:" help:"Change the password."`

	Serve  serveCommand   `cmd:"" group:"Service:" help:"Run the whole service in this process."`
	User   userCommands   `cmd:"" group:"Service:" help:"Create, show and change users."`
	Inbox  inboxCommand   `cmd:"" group:"Service:" help:"Show the mail and text messages that were sent on this machine."`
	Outbox outboxCommands `cmd:"" group:"Service:" help:"Show, retry and cancel notifications, and see who gets no mail."`
	Sweep  sweepCommand   `cmd:"" group:"Service:" help:"Move and remove expired files now, and what crashes left."`

	Backup      backupCommand      `cmd:"" group:"Service:" help:"Copy all data of this machine to another directory, also while the service runs."`
	RestoreData restoreDataCommand `cmd:"" group:"Service:" help:"Begin anew with the data of a backup."`

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

// open opens the ports; done ends their use. In the cloud only the given ones
// are opened.
func (s store) open(ctx context.Context, settings api.Settings, o local.Options, ports ...boot.Port) (p *api.Ports, done func() error, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if !s.inCloud() {
		data, err := local.Open(s.Data, settings, o)
		if err != nil {
			return nil, nil, err
		}
		if data.Ports.Events, err = notify.Listening(ctx, data.Table); err != nil {
			return nil, nil, errors.Join(err, data.Close())
		}
		return data.Ports, data.Close, nil
	}
	settings.Events = s.Events
	names := map[string]string{
		"FERRY_TABLE": s.Table, "FERRY_FILES_BUCKET": s.FilesBucket,
		"FERRY_BACKUP_BUCKET": s.BackupBucket, "FERRY_KEY_PARAMETER": s.KeyParameter,
	}
	getenv := func(name string) string { return cmp.Or(names[name], os.Getenv(name)) }
	p, err = boot.OpenPorts(ctx, settings, getenv, ports...)
	if err != nil {
		return nil, nil, &coded{exitSettings, err}
	}
	p.Log = o.Log
	return p, func() error { return nil }, nil
}

type sweepCommand struct {
	store
	Retention retention `embed:""`
}

type retention struct {
	KeepDays   string `env:"FERRY_KEEP_DAYS" placeholder:"30" help:"Days that a file stays in the user area; 0 is for ever."`
	BackupDays string `env:"FERRY_BACKUP_DAYS" placeholder:"90" help:"Days that it stays in the backup area after that; 0 is for ever."`
}

func (r retention) env() map[string]string {
	return map[string]string{"FERRY_KEEP_DAYS": r.KeepDays, "FERRY_BACKUP_DAYS": r.BackupDays}
}

// bounds are those of what a server sends.
type bounds struct {
	PerHour      string `name:"notices-per-hour" env:"FERRY_NOTICES_PER_HOUR" placeholder:"100" help:"Most notifications that a user may cause in an hour; 0 is unbounded."`
	PerDay       string `name:"notices-per-day" env:"FERRY_NOTICES_PER_DAY" placeholder:"500" help:"Most that a user may cause in a day; 0 is unbounded."`
	PerRecipient string `name:"notices-per-recipient" env:"FERRY_NOTICES_PER_RECIPIENT" placeholder:"50" help:"Most that an address or number gets in a day, whoever causes them; 0 is unbounded."`
}

func (b bounds) env() map[string]string {
	return map[string]string{
		"FERRY_NOTICES_PER_HOUR": b.PerHour, "FERRY_NOTICES_PER_DAY": b.PerDay, "FERRY_NOTICES_PER_RECIPIENT": b.PerRecipient,
	}
}

// settings reads the values of flags like those of the environment.
func settings(values map[string]string) (api.Settings, error) {
	s, err := boot.Settings(func(name string) string { return values[name] })
	if err != nil {
		return s, &coded{exitSettings, err}
	}
	return s, nil
}

func (c sweepCommand) Run(ctx context.Context, out console) (err error) {
	set, err := settings(c.Retention.env())
	if err != nil {
		return err
	}
	s, done, err := c.openService(ctx, set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r, err := s.Sweep(ctx)
	fmt.Fprintf(out.Out, "%d objects seen: %d files moved to the backup area, %d removed for good, %d leftovers removed, %d failed\n",
		r.Seen, r.Moved, r.Purged, r.Orphans, r.Failed)
	return err
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
