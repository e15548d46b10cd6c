package operator

import (
	"context"
	"fmt"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/backup"
	"ferry/shared/boot/local"
	"ferry/shared/users"
)

type Backup struct {
	Data   string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR"`
	Verify bool   `help:"Compare all bytes, here and in the backup, by their checksums."`
	Quiet  bool   `short:"q" help:"Show no progress."`
	To     string `arg:"" type:"path" help:"Backup directory: a new one, or an earlier backup to bring up to date."`
}

func (c Backup) Run(ctx context.Context, out cli.Console) error {
	return openLocal(c.Data, local.Options{Existing: true}, func(d *local.Data) error {
		return copyData(out, c.Quiet, c.To, func(p backup.Progress) (backup.Copied, error) {
			return backup.Make(ctx, d, c.To, c.Verify, p)
		})
	})
}

type RestoreData struct {
	Data  string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR"`
	File  string `placeholder:"USER/ID"`
	Quiet bool   `short:"q" help:"Show no progress."`
	From  string `arg:"" type:"path" help:"Backup directory."`
}

func (c RestoreData) Run(ctx context.Context, out cli.Console) error {
	if c.File != "" {
		return c.restoreFile(ctx, out)
	}
	return copyData(out, c.Quiet, c.Data, func(p backup.Progress) (backup.Copied, error) {
		return backup.Restore(ctx, c.From, c.Data, p)
	})
}

func (c RestoreData) restoreFile(ctx context.Context, out cli.Console) error {
	user, number, _ := strings.Cut(c.File, "/")
	owner, ok := users.CanonicalName(user)
	id, isID := cli.FileID(number)
	if !ok || !isID {
		return cli.Usage("--file %s: want USER/ID, such as anna/12", c.File)
	}
	return openLocal(c.Data, local.Options{Existing: true}, func(d *local.Data) error {
		f, err := backup.RestoreFile(ctx, d, c.From, owner, id)
		if err == nil {
			out.Print(
				"%s: %s/%d %s restored, %s\n",
				c.Data,
				f.Owner,
				f.ID,
				f.Name,
				cli.Size(f.Length),
			)
		}
		return err
	})
}

// copyData shows progress, and reports at the end what was copied.
func copyData(
	out cli.Console,
	quiet bool,
	to string,
	run func(p backup.Progress) (backup.Copied, error),
) error {
	m := cli.NewMeter(out, quiet)
	m.Begin("copying", 0)
	m.Start()
	copied, err := run(backup.Progress{Expect: m.Expect, Done: m.Add})
	m.End()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %s; %d new, %s",
		to, cli.Count(copied.Files, "file"), copied.New, cli.Size(copied.Bytes))
	if copied.Removed > 0 {
		text += fmt.Sprintf("; %d of an earlier backup removed", copied.Removed)
	}
	out.Print("%s\n", text)
	for _, what := range copied.Damaged {
		out.Tell("damaged: %s\n", what)
	}
	if len(copied.Damaged) > 0 {
		return cli.Fail(
			cli.ExitDamaged,
			"this is damaged or lost; everything else was copied, and nothing was removed",
		)
	}
	return nil
}
