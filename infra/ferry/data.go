package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/boot/stores"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
)

// store says where the data is: on this machine, or in the cloud.
type store struct {
	Data         string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR"`
	Stack        string `env:"FERRY_STACK" placeholder:"NAME"`
	Region       string `env:"AWS_REGION" placeholder:"REGION"`
	Table        string `env:"FERRY_TABLE" placeholder:"NAME"`
	FilesBucket  string `env:"FERRY_FILES_BUCKET" placeholder:"NAME" help:"S3 bucket of the user area, with --table."`
	BackupBucket string `env:"FERRY_BACKUP_BUCKET" placeholder:"NAME" help:"S3 bucket of the backup area, with --table."`
	KeyParameter string `env:"FERRY_KEY_PARAMETER" placeholder:"NAME" help:"SSM parameter of the link key, with --table."`
	Events       bool   `env:"FERRY_EVENTS" help:"With --table: record events, for the stack's topic."`
}

// inCloud reports whether the data is in a stack.
func (s store) inCloud() bool { return s.Table != "" }

// grace returns how old an object without a record must be before it is removed. On this machine it
// must exceed the time between a file and its record: the first file of a form waits for the last
// one, which may arrive slowly. On S3 it must also cover an upload in parts, whose age counts from its start.
func grace(bytes blob.Store) time.Duration {
	if bytes.Local() {
		return 25 * time.Hour
	}
	return 8 * 24 * time.Hour
}

// place says where each store is. The buckets and the key of a stack count only with its table.
func (s store) place(set service.Settings) stores.Place {
	if !s.inCloud() {
		return stores.Place{Dir: s.Data}
	}
	return stores.Place{
		Table: s.Table, FilesBucket: s.FilesBucket, BackupBucket: s.BackupBucket, KeyParameter: s.KeyParameter,
		BackupClass: set.BackupClass,
		AWS:         func(ctx context.Context) (aws.Config, error) { return awsConfig(ctx, s.Region) },
	}
}

// use calls open for data that must exist.
func (s store) use(ctx context.Context, f func(*service.Service) error, needs ...stores.Need) error {
	return s.open(ctx, service.Settings{}, local.Options{Existing: true}, f, needs...)
}

// open opens the data, runs f on it, and closes it. On a stack it opens only the table
// and what f needs.
func (s store) open(
	ctx context.Context, set service.Settings, o local.Options, f func(*service.Service) error, needs ...stores.Need,
) error {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(screen{os.Stderr}, nil))
	}
	opened, err := stores.Open(ctx, s.place(set), o, needs...)
	if err != nil && s.inCloud() {
		return withCode(exitSettings, err)
	}
	if err != nil {
		return err
	}
	if err = s.prepare(ctx, opened.Table, &set); err == nil {
		err = f(service.New(opened.Ports, set))
	}
	return errors.Join(err, opened.Close())
}

// prepare checks a table's format, and sets what depends on where the data is.
func (s store) prepare(ctx context.Context, t table.Table, set *service.Settings) (err error) {
	if !s.inCloud() { // the format was checked before anything was changed
		set.Events, err = notify.Listening(ctx, t)
		return err
	}
	set.Events = s.Events
	set.ASCIIMail = true // the stack sends by SES
	return fault.Wrap(table.CheckFormat(ctx, t), "table "+s.Table)
}

// openLocal opens the data of this machine, runs f on it, and closes it.
func openLocal(dir string, o local.Options, f func(*local.Data) error) error {
	data, err := local.Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(f(data), data.Close())
}

// filePorts are what a command on files needs besides the table.
func filePorts() []stores.Need { return []stores.Need{stores.Files, stores.Key} }

type storageClass struct {
	BackupStorageClass string `env:"FERRY_BACKUP_STORAGE_CLASS" placeholder:"STANDARD"`
}

type checkCommand struct {
	store
	storageClass
	Quick  bool `help:"Compare only sizes: on this machine no bytes are read."`
	Repair bool
	// RemoveMany is needed if there are so many leftovers that an older table is the likely cause.
	RemoveMany bool `help:"With --repair: remove leftovers even if there are more than 100."`
	Quiet      bool `short:"q" help:"Show no progress."`
	JSON       bool `name:"json" help:"Print a JSON object."`
}

func (c checkCommand) Run(ctx context.Context, set service.Settings, out console) error {
	set = service.Settings{BackupClass: set.BackupClass} // for moves that it finishes
	return c.open(ctx, set, local.Options{Existing: true}, func(p *service.Service) error {
		all := checked{Findings: []files.Finding{}}
		m := newMeter(out, c.Quiet || c.JSON)
		m.begin("checking", 0)
		m.start()
		check := files.Check{
			Service: p.Files(), Grace: grace(p.Blobs), Quick: c.Quick, Repair: c.Repair, RemoveMany: c.RemoveMany,
			Wait: files.RemovalTime, Expect: m.expect, Done: m.add,
			Found: func(f files.Finding) {
				if c.JSON {
					all.Findings = append(all.Findings, f)
				} else {
					m.print(out.Out, "%s", c.finding(f))
				}
			},
		}
		r, err := check.Run(ctx)
		m.end()
		if err != nil {
			return err
		}
		all.CheckReport = r
		if c.JSON {
			err = printJSON(out, all)
		} else {
			out.print("%s and %s compared; faults: %d, mended: %d, left to the sweep: %d\n",
				count(r.Files, "file"), count(r.Objects, "object"), r.Found, r.Mended, r.Due)
		}
		if err != nil {
			return err
		}
		if r.Unsure > 0 {
			out.tell("ferry: warning: %s changed too often to add up what they use; try again\n",
				count(r.Unsure, "user"))
		}
		if r.Many > 0 && !c.RemoveMany {
			out.tell("ferry: %d objects and links have no record: an older table is the likely cause, "+
				"so --repair leaves them; restore the newest table, or add --remove-many\n", r.Many)
		}
		if left := r.Found - r.Mended; left > 0 {
			return fail(exitDamaged, "faults left: %d", left)
		}
		return nil
	}, filePorts()...)
}

// checked is what check prints as JSON.
type checked struct {
	files.CheckReport
	Findings []files.Finding `json:"findings"`
}

// finding formats a fault as a line.
func (c checkCommand) finding(f files.Finding) string {
	id := "-"
	if f.ID > 0 {
		id = fmt.Sprint(f.ID)
	}
	line := fmt.Sprintf("%s %s %s %s: %s", f.Kind, cmp.Or(f.User, "-"), id, f.Key, f.What)
	if f.Mended {
		line += " (mended)"
	} else if f.Lost && f.ID > 0 && !c.inCloud() {
		line += fmt.Sprintf("; get it from a backup: ferry restore-data BACKUP --file %s/%d", f.User, f.ID)
	}
	return printable(line)
}

type retention struct {
	KeepDays   string `env:"FERRY_KEEP_DAYS" placeholder:"30"`
	BackupDays string `env:"FERRY_BACKUP_DAYS" placeholder:"90"`
	Movers     string `env:"FERRY_MOVERS" placeholder:"50"`
	storageClass
}

type sweepCommand struct {
	store
	Retention retention `embed:""`
}

func (c sweepCommand) Run(ctx context.Context, set service.Settings, out console) error {
	return c.open(ctx, set, local.Options{Existing: true}, func(p *service.Service) error {
		sweeper := files.Sweeper{Service: p.Files(), Grace: grace(p.Blobs), AtOnce: set.Movers}
		r, err := sweeper.Run(ctx)
		out.print("%s seen: %s moved to the backup area, %d removed for good, %s removed, %d failed\n",
			count(r.Seen, "object"), count(r.Moved, "file"), r.Purged, count(r.Orphans, "leftover"), r.Failed)
		if r.Kept > 0 {
			out.print("more than 100 leftovers were found, so %d are kept for now: "+
				"was an older table restored? see ferry check\n", r.Kept)
		}
		if r.Unfinished > 0 {
			out.print("%s not finished: the next run continues\n", count(r.Unfinished, "object"))
		}
		return err
	}, filePorts()...)
}
