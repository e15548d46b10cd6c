// Package operator has the commands for people who run a service, on its data: on this machine or in a stack.
// Start reading at Store.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"ferry/infra/ferry/cli"
	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/boot/stores"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
	"github.com/aws/aws-sdk-go-v2/aws"
)

// UsualData is the default of --data.
const UsualData = "./.ferry"

// Store says where the data is: on this machine, or in the cloud.
type Store struct {
	Data         string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR"`
	Stack        string `env:"FERRY_STACK" placeholder:"NAME"`
	Region       string `env:"AWS_REGION" placeholder:"REGION"`
	Table        string `env:"FERRY_TABLE" placeholder:"NAME"`
	FilesBucket  string `env:"FERRY_FILES_BUCKET" placeholder:"NAME" help:"S3 bucket of the user area, with --table."`
	BackupBucket string `env:"FERRY_BACKUP_BUCKET" placeholder:"NAME" help:"S3 bucket of the backup area, with --table."`
	KeyParameter string `env:"FERRY_KEY_PARAMETER" placeholder:"NAME" help:"SSM parameter of the link key, with --table."`
	Events       bool   `env:"FERRY_EVENTS" help:"With --table: record events, for the stack's topic."`
}

// InCloud reports whether the data is in a stack.
func (s Store) InCloud() bool { return s.Table != "" }

// Grace returns how old an object without a record must be before it is removed. On this machine it
// must exceed the time between a file and its record: the first file of a form waits for the last
// one, which may arrive slowly. On S3 it must also cover an upload in parts, whose age counts from its start.
func Grace(bytes blob.Store) time.Duration {
	if bytes.Local() {
		return 25 * time.Hour
	}
	return 8 * 24 * time.Hour
}

// place says where each store is. The buckets and the key of a stack count only with its table.
func (s Store) place(set service.Settings) stores.Place {
	if !s.InCloud() {
		return stores.Place{Dir: s.Data}
	}
	return stores.Place{
		Table:        s.Table,
		FilesBucket:  s.FilesBucket,
		BackupBucket: s.BackupBucket,
		KeyParameter: s.KeyParameter,
		BackupClass:  set.BackupClass,
		AWS: func(ctx context.Context) (aws.Config, error) {
			return awsConfig(ctx, s.Region)
		},
	}
}

// use calls open for data that must exist.
func (s Store) use(
	ctx context.Context,
	f func(*service.Service) error,
	needs ...stores.Need,
) error {
	return s.Open(ctx, service.Settings{}, local.Options{Existing: true}, f, needs...)
}

// Open opens the data, runs f on it, and closes it. On a stack it opens only the table
// and what f needs.
func (s Store) Open(
	ctx context.Context, set service.Settings, o local.Options, f func(*service.Service) error, needs ...stores.Need,
) error {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(cli.Screen{Raw: os.Stderr}, nil))
	}
	opened, err := stores.Open(ctx, s.place(set), o, needs...)
	if err != nil && s.InCloud() {
		return cli.WithCode(cli.ExitSettings, err)
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
func (s Store) prepare(ctx context.Context, t table.Table, set *service.Settings) (err error) {
	if !s.InCloud() { // the format was checked before anything was changed
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

// FilePorts are what a command on files needs besides the table.
func FilePorts() []stores.Need { return []stores.Need{stores.Files, stores.Key} }

type storageClass struct {
	BackupStorageClass string `env:"FERRY_BACKUP_STORAGE_CLASS" placeholder:"STANDARD"`
}

type Check struct {
	Store
	storageClass
	Quick  bool `help:"Compare only sizes: on this machine no bytes are read."`
	Repair bool
	// RemoveMany is needed if there are so many leftovers that an older table is the likely cause.
	RemoveMany bool `help:"With --repair: remove leftovers even if there are more than 100."`
	Quiet      bool `short:"q" help:"Show no progress."`
	JSON       bool `name:"json" help:"Print a JSON object."`
}

func (c Check) Run(ctx context.Context, set service.Settings, out cli.Console) error {
	set = service.Settings{BackupClass: set.BackupClass} // for moves that it finishes
	return c.Open(ctx, set, local.Options{Existing: true}, func(p *service.Service) error {
		all := checked{Findings: []files.Finding{}}
		m := cli.NewMeter(out, c.Quiet || c.JSON)
		m.Begin("checking", 0)
		m.Start()
		check := files.Check{
			Service:    p.Files(),
			Grace:      Grace(p.Blobs),
			Quick:      c.Quick,
			Repair:     c.Repair,
			RemoveMany: c.RemoveMany,
			Wait:       files.RemovalTime,
			Expect:     m.Expect,
			Done:       m.Add,
			Found: func(f files.Finding) {
				if c.JSON {
					all.Findings = append(all.Findings, f)
				} else {
					m.Print(out.Out, "%s", c.finding(f))
				}
			},
		}
		r, err := check.Run(ctx)
		m.End()
		if err != nil {
			return err
		}
		all.CheckReport = r
		if c.JSON {
			err = cli.PrintJSON(out, all)
		} else {
			out.Print("%s and %s compared; faults: %d, mended: %d, left to the sweep: %d\n",
				cli.Count(
					r.Files,
					"file",
				), cli.Count(r.Objects, "object"), r.Found, r.Mended, r.Due)
		}
		if err != nil {
			return err
		}
		if r.Unsure > 0 {
			out.Tell(
				"ferry: warning: %s changed too often to add up what they use; try again\n",
				cli.Count(r.Unsure, "user"),
			)
		}
		if r.Many > 0 && !c.RemoveMany {
			out.Tell(
				"ferry: %d objects and links have no record: an older table is the likely cause, "+
					"so --repair leaves them; restore the newest table, or add --remove-many\n",
				r.Many,
			)
		}
		if left := r.Found - r.Mended; left > 0 {
			return cli.Fail(cli.ExitDamaged, "faults left: %d", left)
		}
		return nil
	}, FilePorts()...)
}

// checked is what check prints as JSON.
type checked struct {
	files.CheckReport
	Findings []files.Finding `json:"findings"`
}

// finding formats a fault as a line.
func (c Check) finding(f files.Finding) string {
	id := "-"
	if f.ID > 0 {
		id = fmt.Sprint(f.ID)
	}
	line := fmt.Sprintf("%s %s %s %s: %s", f.Kind, cmp.Or(f.User, "-"), id, f.Key, f.What)
	if f.Mended {
		line += " (mended)"
	} else if f.Lost && f.ID > 0 && !c.InCloud() {
		line += fmt.Sprintf("; get it from a backup: ferry restore-data BACKUP --file %s/%d",
			f.User, f.ID)
	}
	return line
}

type Retention struct {
	KeepDays   string `env:"FERRY_KEEP_DAYS" placeholder:"30"`
	BackupDays string `env:"FERRY_BACKUP_DAYS" placeholder:"90"`
	Movers     string `env:"FERRY_MOVERS" placeholder:"50"`
	storageClass
}

type Sweep struct {
	Store
	Retention Retention `embed:""`
}

func (c Sweep) Run(ctx context.Context, set service.Settings, out cli.Console) error {
	return c.Open(ctx, set, local.Options{Existing: true}, func(p *service.Service) error {
		sweeper := files.Sweeper{Service: p.Files(), Grace: Grace(p.Blobs), AtOnce: set.Movers}
		r, err := sweeper.Run(ctx)
		out.Print(
			"%s seen: %s moved to the backup area, %d removed for good, %s removed, %d failed\n",
			cli.Count(r.Seen, "object"),
			cli.Count(r.Moved, "file"),
			r.Purged,
			cli.Count(r.Orphans, "leftover"),
			r.Failed,
		)
		if r.Kept > 0 {
			out.Print("more than 100 leftovers were found, so %d are kept for now: "+
				"was an older table restored? see ferry check\n", r.Kept)
		}
		if r.Unfinished > 0 {
			out.Print(
				"%s not finished: the next run continues\n",
				cli.Count(r.Unfinished, "object"),
			)
		}
		return err
	}, FilePorts()...)
}
