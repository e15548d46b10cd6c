package main

import (
	"context"
	"fmt"
	"os"

	"ferry/shared/client"
)

type uploadsCommand struct {
	remote
	Abort []string `placeholder:"ID" help:"End this upload and remove what has arrived of it; may be repeated."`
	JSON  bool     `name:"json" help:"Print a JSON array, with --abort of what failed too."`
}

func (uploadsCommand) Help() string {
	return "Lists uploads in parts that have not ended. To go on with one run the same ferry up again."
}

func (c uploadsCommand) Run(ctx context.Context, out console) error {
	cl, _, err := c.client(out)
	if err != nil {
		return err
	}
	if len(c.Abort) > 0 {
		return c.abort(ctx, out, cl)
	}
	rows := newRows(out.Out, c.JSON)
	rows.head("%-36s  %10s  %-16s  %s\n", "ID", "SIZE", "EXPIRES", "NAME")
	for s, err := range cl.Sessions(ctx) {
		if err != nil {
			return err
		}
		if err := rows.row(s, fmt.Sprintf("%-36s  %10s  %-16s  %s\n", s.ID, size(s.Length), when(s.Expires), printable(s.Name))); err != nil {
			return err
		}
	}
	return rows.end("no uploads are under way")
}

// ended is what is told of an upload that was to end.
type ended struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

func (c uploadsCommand) abort(ctx context.Context, out console, cl *client.Client) error {
	results, failed := []ended{}, failures{out: out}
	for _, id := range c.Abort {
		r, err := ended{ID: id}, cl.Abort(ctx, id)
		if err == nil {
			forgetSession(id)
			fmt.Fprintf(out.Err, "upload %s has ended\n", id)
		}
		if err != nil {
			r.Error = explain(err)
		}
		results = append(results, r)
		failed.add(id, err)
	}
	if c.JSON {
		if err := printJSON(out, results); err != nil {
			return err
		}
	}
	return failed.err()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
