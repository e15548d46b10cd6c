package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table/dynamo"
)

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

type storageClass struct {
	BackupStorageClass string `env:"FERRY_BACKUP_STORAGE_CLASS" placeholder:"STANDARD" help:"With --table: S3 storage class of files over 256 KiB in the backup area, STANDARD or GLACIER_IR."`
}

type checkCommand struct {
	store
	storageClass
	Quick  bool `help:"Compare sizes alone: on this machine no bytes are read."`
	Repair bool `help:"Add up quotas again, put links right, and remove leftovers."`
	Quiet  bool `short:"q" help:"Show no progress."`
}

// Help is shown by ferry check --help.
func (checkCommand) Help() string {
	return `Compares the record of each file with its bytes, its links and its user's quota, here or in a
stack, also while the service runs. In a stack S3's own checksums are compared; no bytes are read.

Each fault is a line: its kind (record, bytes, size, checksum, move, link, quota or leftover), user, id of
the file, key of the object or item, and details.

--repair never removes a record, or bytes that a record names: get those from a backup. If a fault
is left, the exit code is 65.`
}

func (c checkCommand) Run(ctx context.Context, set api.Settings, out console) error {
	set = api.Settings{BackupClass: set.BackupClass} // for moves that it finishes
	return c.open(ctx, set, local.Options{Existing: true}, func(p *api.Ports) error {
		m := newMeter(out, c.Quiet)
		m.name("checking")
		m.start()
		check := files.Check{
			Sweeper: &files.Sweeper{Service: file.Service(p), Log: slog.New(slog.DiscardHandler), Grace: c.grace()},
			Quick:   c.Quick, Repair: c.Repair, Settle: files.Settle, Expect: m.expect, Done: m.add,
			Found: func(f files.Finding) { m.print(out.Out, "%s", finding(f)) },
		}
		r, err := check.Run(ctx)
		m.end()
		if err != nil {
			return err
		}
		fmt.Fprintf(out.Out, "%d files and %d objects compared; faults: %d, mended: %d\n",
			r.Files, r.Objects, r.Found, r.Mended)
		if r.Unsure > 0 {
			fmt.Fprintf(out.Err, "ferry: warning: %d users were too busy to add up what they use; try again\n", r.Unsure)
		}
		if left := r.Found - r.Mended; left > 0 {
			return &coded{exitDamaged, fmt.Errorf("faults left: %d", left)}
		}
		return nil
	}, filePorts()...)
}

// finding formats a fault as a line.
func finding(f files.Finding) string {
	id := "-"
	if f.ID > 0 {
		id = fmt.Sprint(f.ID)
	}
	line := fmt.Sprintf("%s %s %s %s: %s", f.Kind, cmp.Or(f.User, "-"), id, f.Key, f.What)
	if f.Mended {
		line += " (mended)"
	}
	return printable(line)
}

type retention struct {
	KeepDays   string `env:"FERRY_KEEP_DAYS" placeholder:"30" help:"Days that a file stays in the user area; 0 means for ever."`
	BackupDays string `env:"FERRY_BACKUP_DAYS" placeholder:"90" help:"Days that it then stays in the backup area; 0 means for ever."`
	Movers     string `env:"FERRY_MOVERS" placeholder:"50" help:"Files that are moved to or from the backup area at the same time, 1 to 200."`
	storageClass
}

type sweepCommand struct {
	store
	Retention retention `embed:""`
}

func (c sweepCommand) Run(ctx context.Context, set api.Settings, out console) error {
	return c.open(ctx, set, local.Options{Existing: true}, func(p *api.Ports) error {
		sweeper := files.Sweeper{Service: file.Service(p), Log: p.Log, Grace: c.grace(), AtOnce: set.Movers}
		r, err := sweeper.Run(ctx)
		fmt.Fprintf(out.Out, "%d objects seen: %d files moved to the backup area, %d removed for good, %d leftovers removed, %d failed\n",
			r.Seen, r.Moved, r.Purged, r.Orphans, r.Failed)
		if r.Unfinished > 0 {
			fmt.Fprintf(out.Out, "%d take long, and go on in the next run\n", r.Unfinished)
		}
		if r.Old > 0 {
			fmt.Fprintf(out.Out, "%d objects have keys of the old form, so they are still looked at one by one\n", r.Old)
		}
		return err
	}, filePorts()...)
}

type backupCommand struct {
	Data  string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR" help:"Data directory (default ${default})."`
	Quiet bool   `short:"q" help:"Show no progress."`
	To    string `arg:"" type:"path" help:"Backup directory: a new one, or an earlier backup to bring up to date."`
}

// Help is shown by ferry backup --help.
func (backupCommand) Help() string {
	return `The service may keep running. The backup shows one moment, with each file compared with its checksum, and is itself a data directory:
"ferry serve --data DIR" can serve it. It holds the key of all links: keep it where only you can read it. For a stack on AWS see infra/runbook/README.md.`
}

func (c backupCommand) Run(ctx context.Context, out console) (err error) {
	d, err := local.Open(c.Data, api.Settings{}, local.Options{Existing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return copyData(out, c.Quiet, c.To, func(p local.Progress) (local.Copied, error) { return d.Backup(ctx, c.To, p) })
}

type restoreDataCommand struct {
	Data  string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR" help:"Directory to restore to; it must have no data yet (default ${default})."`
	Quiet bool   `short:"q" help:"Show no progress."`
	From  string `arg:"" type:"path" help:"Backup directory."`
}

func (c restoreDataCommand) Run(ctx context.Context, out console) error {
	return copyData(out, c.Quiet, c.Data, func(p local.Progress) (local.Copied, error) { return local.Restore(ctx, c.From, c.Data, p) })
}

// copyData shows progress, and reports at the end what was copied.
func copyData(out console, quiet bool, to string, run func(p local.Progress) (local.Copied, error)) error {
	m := newMeter(out, quiet)
	m.name("copying")
	m.start()
	copied, err := run(local.Progress{Expect: m.expect, Done: m.add})
	m.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Out, "%s: %d files; %d of them new, %s; %d of an earlier backup removed\n", to, copied.Files, copied.New, size(copied.Bytes), copied.Removed)
	for _, name := range copied.Damaged {
		fmt.Fprintf(out.Err, "damaged: %s\n", name)
	}
	if n := len(copied.Damaged); n > 0 {
		return &coded{exitDamaged, fmt.Errorf("%d files have lost bytes or differ from what was uploaded; everything else was copied", n)}
	}
	return nil
}
