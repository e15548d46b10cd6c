package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ferry/shared/client"
)

type lsCommand struct {
	remote
	Backup bool `help:"List the backup area, where deleted files stay for a while."`
	Links  bool `help:"Print each file's link too."`
	JSON   bool `name:"json" help:"Print a JSON array."`
}

func (c lsCommand) Run(ctx context.Context, out console) error {
	cl, _, err := c.client(out)
	if err != nil {
		return err
	}
	rows := newRows(out.Out, c.JSON)
	rows.head("%8s  %10s  %-16s  %s\n", "ID", "SIZE", "MODIFIED", "NAME")
	for f, err := range cl.Files(ctx, area(c.Backup)) {
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%8d  %10s  %-16s  %s\n", f.ID, size(f.Length), when(time.UnixMilli(f.Modified)), printable(f.Name))
		if c.Links {
			line += strings.Repeat(" ", 10) + f.Link + "\n"
		}
		if err := rows.row(f, line); err != nil {
			return err
		}
	}
	return rows.end("no files")
}

func area(backup bool) client.Area {
	if backup {
		return client.BackupArea
	}
	return client.UserArea
}

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// printable is a text that says nothing to a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// size writes a number of bytes for people.
func size(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if v /= 1000; v < 999.5 || unit == "PB" {
			digits := 1
			if v >= 99.95 {
				digits = 0
			}
			return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
		}
	}
	return ""
}

type rmCommand struct {
	remote
	Files []string `arg:"" name:"file" help:"Id or name. A name that several files have is refused, and a number is an id."`
	JSON  bool     `name:"json" help:"Print a JSON array of the files, as they are in the backup area, and what failed."`
}

func (c rmCommand) Run(ctx context.Context, out console) error {
	return moveEach(ctx, out, c.remote, c.Files, c.JSON, client.UserArea, "in the backup area", (*client.Client).Delete)
}

type restoreCommand struct {
	remote
	Files []string `arg:"" name:"file" help:"Id or name in the backup area. A number is an id."`
	JSON  bool     `name:"json" help:"Print a JSON array of the files, and what failed."`
}

func (c restoreCommand) Run(ctx context.Context, out console) error {
	return moveEach(ctx, out, c.remote, c.Files, c.JSON, client.BackupArea, "restored", (*client.Client).Restore)
}

// moved is what is told of one file.
type moved struct {
	What string `json:"what"`
	*client.File
	Error string `json:"error,omitempty"`
}

// moveEach moves the named files out of an area, as many as it can.
func moveEach(ctx context.Context, out console, r remote, names []string, asJSON bool, from client.Area, done string,
	move func(*client.Client, context.Context, int64) (client.File, error),
) error {
	cl, _, err := r.client(out)
	if err != nil {
		return err
	}
	results, failed := []moved{}, failures{out: out}
	for _, name := range names {
		r := moved{What: name}
		id, err := one(ctx, cl, from, name)
		if err == nil {
			var f client.File
			if f, err = move(cl, ctx, id); err == nil {
				r.File = &f
				fmt.Fprintf(out.Err, "%s (id %d) is %s\n", printable(f.Name), f.ID, done)
			}
		}
		if err != nil {
			r.Error = explain(err)
		}
		results = append(results, r)
		if failed.add(name, err); ctx.Err() != nil {
			break
		}
	}
	if asJSON {
		if err := printJSON(out, results); err != nil {
			return err
		}
	}
	return failed.err()
}

// one finds the id of what a person names, which must be one file.
func one(ctx context.Context, cl *client.Client, a client.Area, name string) (int64, error) {
	if id, ok := fileID(name); ok {
		return id, nil
	}
	found, err := cl.Named(ctx, a, name, 10)
	if err != nil {
		return 0, err
	}
	if len(found) > 1 {
		var ids []string
		for _, f := range found {
			ids = append(ids, strconv.FormatInt(f.ID, 10))
		}
		return 0, &coded{exitUsage, fmt.Errorf("several files are named %s; say which id: %s", printable(name), strings.Join(ids, ", "))}
	}
	return found[0].ID, nil
}

func fileID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0
}
