package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Ls struct {
	remote
	Files  []string `arg:"" name:"file" optional:""`
	Long   bool     `short:"l"`
	Backup bool     `help:"List the backup area, where deleted files stay for a while."`
	Links  bool     `help:"Print each file's link too."`
	JSON   bool     `name:"json" help:"Print a JSON array."`
}

func (c Ls) Run(ctx context.Context, out cli.Console, who *identity) error {
	all, failed := who.Files(ctx, area(c.Backup)), cli.Failures{Out: out}
	if len(c.Files) > 0 {
		every, err := collected(all)
		if err != nil {
			return err
		}
		all = cli.Values(c.chosen(every, &failed))
	}
	if !c.Long {
		return cmp.Or(c.short().Print(out, all), failed.First)
	}
	known, err := who.detailed(ctx, area(c.Backup), all)
	if err == nil {
		err = c.long().Print(out, cli.Values(known))
	}
	return cmp.Or(err, failed.First)
}

// chosen returns the files that the arguments select, in the order of the list.
func (c Ls) chosen(every []client.File, failed *cli.Failures) []client.File {
	wanted := map[int64]bool{}
	for _, arg := range c.Files {
		found := choose(every, arg)
		if len(found) == 0 {
			failed.Add(arg, fmt.Errorf("%w: %s", client.ErrNotFound, arg))
		}
		for _, f := range found {
			wanted[f.ID] = true
		}
	}
	return slices.DeleteFunc(every, func(f client.File) bool { return !wanted[f.ID] })
}

func (c Ls) short() cli.Listing[client.File] {
	return cli.Listing[client.File]{
		JSON:   c.JSON,
		Format: "%8v  %10s  %-16s  %s\n",
		Titles: []any{"ID", "SIZE", "MODIFIED", "NAME"},
		Columns: func(f client.File) []any {
			return []any{
				f.ID, cli.Size(f.Length), cli.When(time.UnixMilli(f.Modified)), c.named(f),
			}
		},
		Nothing: "no files\n",
	}
}

func (c Ls) long() cli.Listing[client.Details] {
	return cli.Listing[client.Details]{
		JSON:   c.JSON,
		Format: "%8v  %10s  %-16s  %-16s  %9v  %-12s  %s\n",
		Titles: []any{"ID", "SIZE", "MODIFIED", "EXPIRES", "DOWNLOADS", "FROM", "NAME"},
		Columns: func(d client.Details) []any {
			return []any{
				d.ID, cli.Size(d.Length), cli.When(time.UnixMilli(d.Modified)), until(d), allDownloads(d),
				cmp.Or(from(d), "you"), c.named(d.File),
			}
		},
		Nothing: "no files\n",
	}
}

// named returns a file's name, and its link on a separate line if requested.
func (c Ls) named(f client.File) any {
	if c.Links {
		return cli.Above{First: f.Name, Second: f.Link}
	}
	return f.Name
}

// allDownloads returns the number of downloads by all links, with ~ if it is an estimate.
func allDownloads(d client.Details) string {
	n, about := int64(0), ""
	for _, l := range d.Links {
		n += l.Used.Count
		if l.Used.About {
			about = "~"
		}
	}
	return fmt.Sprint(about, n)
}

const (
	// mostDetailed is the maximum number of files that ls -l asks about, and askedAtOnce how many at a time.
	mostDetailed = 200
	askedAtOnce  = 8
)

// detailed returns everything about the first of some files, except those that are gone by then.
func (i *identity) detailed(
	ctx context.Context, a client.Area, files iter.Seq2[client.File, error],
) ([]client.Details, error) {
	all := make([]client.Details, mostDetailed)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce)
	n := 0
	for f, err := range files {
		if n == mostDetailed {
			i.out.Tell(
				"only the newest %d files are shown; for others, give names or a pattern\n",
				mostDetailed,
			)
			break
		}
		known := &all[n]
		n++
		g.Go(func() error {
			if err == nil {
				*known, err = i.File(inner, a, f.ID)
			}
			if errors.Is(err, client.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(all, func(d client.Details) bool { return d.ID == 0 }), err
}

func area(backup bool) client.Area {
	if backup {
		return client.BackupArea
	}
	return client.UserArea
}

// several is the maximum number of ids that an error about an ambiguous name lists.
const several = 10

// one returns the id of the file that the user names by id or name. It looks for up to limit files
// of that name, newest first, and refuses if it finds several.
func (i *identity) one(
	ctx context.Context,
	a client.Area,
	name string,
	limit int,
) (int64, error) {
	if id, ok := cli.FileID(name); ok {
		return id, nil
	}
	found, err := i.Named(ctx, a, name, limit)
	if err != nil {
		return 0, err
	}
	if len(found) > 1 {
		var ids []string
		for _, f := range found {
			ids = append(ids, strconv.FormatInt(f.ID, 10))
		}
		return 0, cli.Usage(
			"several files are named %s; say which id: %s",
			cli.Printable(name),
			strings.Join(ids, ", "),
		)
	}
	return found[0].ID, nil
}

type Uploads struct {
	remote
	Abort []string `placeholder:"ID" help:"Abort this upload and remove what has arrived of it; may be repeated."`
	JSON  bool     `name:"json" help:"Print a JSON array; with --abort it includes failures."`
}

func (c Uploads) Run(ctx context.Context, out cli.Console, who *identity) error {
	if len(c.Abort) > 0 {
		return c.abort(ctx, out, who)
	}
	return cli.Listing[client.Session]{
		JSON:   c.JSON,
		Format: "%-36s  %10s  %-16s  %s\n",
		Titles: []any{"ID", "SIZE", "EXPIRES", "NAME"},
		Columns: func(s client.Session) []any {
			return []any{s.ID, cli.Size(s.Length), cli.When(s.Expires), sender(s)}
		},
		Nothing: "no uploads in progress\n",
	}.Print(out, who.Sessions(ctx))
}

// sender returns the name of a session's file, and who sends it if not the caller.
func sender(s client.Session) string {
	if s.From == "" {
		return s.Name
	}
	return s.Name + " (from " + s.From + ")"
}

// ended is the report on an upload to abort.
type ended struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

func (c Uploads) abort(ctx context.Context, out cli.Console, who *identity) error {
	results := []ended{}
	err := cli.Each(ctx, out, c.Abort, "upload %s is aborted", func(id string) error {
		err := who.Abort(ctx, id)
		results = append(results, ended{id, cli.Explain(err)})
		return err
	})
	return cli.Report(out, c.JSON, results, err)
}
