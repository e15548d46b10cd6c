package client

import (
	"cmp"
	"context"
	"errors"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Rm struct {
	remote
	Files  []string `arg:"" name:"file"`
	Backup bool     `xor:"for-good" help:"Remove files from the backup area, for good."`
	Now    bool     `xor:"for-good" help:"Remove files at once and for good, from the backup area too, without asking."`
	JSON   bool     `name:"json" help:"Print a JSON array of the files and of failures."`
}

func (c Rm) Run(ctx context.Context, who *identity) error {
	purge := func(ctx context.Context, id int64) (client.File, error) {
		if c.Now {
			if _, err := who.Delete(ctx, id); err != nil &&
				!errors.Is(err, client.ErrNotFound) {
				return client.File{}, err
			}
		}
		was, err := who.File(ctx, client.BackupArea, id)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return client.File{}, err
		}
		was.ID = id // it may be gone already
		return was.File, who.Purge(ctx, id)
	}
	if c.Now || c.Backup {
		return who.moveEach(ctx, c.Files, c.JSON, area(c.Backup), "removed for good", purge)
	}
	return who.moveEach(ctx, c.Files, c.JSON, client.UserArea, "in the backup area", who.Delete)
}

type Restore struct {
	remote
	Files []string `arg:"" name:"file" help:"Id, name or quoted pattern in the backup area. A number is an id."`
	JSON  bool     `name:"json" help:"Print a JSON array of the files, and of failures."`
}

func (c Restore) Run(ctx context.Context, who *identity) error {
	return who.moveEach(ctx, c.Files, c.JSON, client.BackupArea, "restored", who.Restore)
}

// moved is the report on one file.
type moved struct {
	What string `json:"what"`
	*client.File
	Error string `json:"error,omitempty"`
}

// moveEach moves the named files out of an area, as many as it can.
func (i *identity) moveEach(
	ctx context.Context, names []string, asJSON bool, from client.Area,
	done string, move func(context.Context, int64) (client.File, error),
) error {
	results := []moved{}
	names, err := i.expand(ctx, from, names, false)
	if err != nil {
		return err
	}
	err = cli.Each(ctx, i.out, names, "", func(name string) error {
		r := moved{What: name}
		id, err := i.one(ctx, from, name, several)
		if err == nil {
			var f client.File
			if f, err = move(ctx, id); err == nil {
				r.File = &f
				i.out.Tell("%s (id %d) is %s\n", cmp.Or(f.Name, name), f.ID, done)
			}
		}
		r.Error = cli.Explain(err)
		results = append(results, r)
		return err
	})
	return cli.Report(i.out, asJSON, results, err)
}
