package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/client"
)

type lsCommand struct {
	remote
	Files  []string `arg:"" name:"file" optional:""`
	Long   bool     `short:"l"`
	Backup bool     `help:"List the backup area, where deleted files stay for a while."`
	Links  bool     `help:"Print each file's link too."`
	JSON   bool     `name:"json" help:"Print a JSON array."`
}

func (c lsCommand) Run(ctx context.Context, out console, who *identity) error {
	all, failed := who.Files(ctx, area(c.Backup)), failures{out: out}
	if len(c.Files) > 0 {
		every, err := collected(all)
		if err != nil {
			return err
		}
		all = values(c.chosen(every, &failed))
	}
	if !c.Long {
		return cmp.Or(c.short().print(out, all), failed.first)
	}
	known, err := who.detailed(ctx, area(c.Backup), all)
	if err == nil {
		err = c.long().print(out, values(known))
	}
	return cmp.Or(err, failed.first)
}

// chosen returns the files that the arguments select, in the order of the list.
func (c lsCommand) chosen(every []client.File, failed *failures) []client.File {
	wanted := map[int64]bool{}
	for _, arg := range c.Files {
		found := choose(every, arg)
		if len(found) == 0 {
			failed.add(arg, fmt.Errorf("%w: %s", client.ErrNotFound, arg))
		}
		for _, f := range found {
			wanted[f.ID] = true
		}
	}
	return slices.DeleteFunc(every, func(f client.File) bool { return !wanted[f.ID] })
}

func (c lsCommand) short() listing[client.File] {
	return listing[client.File]{
		c.JSON, "%8v  %10s  %-16s  %s\n", []any{"ID", "SIZE", "MODIFIED", "NAME"},
		func(f client.File) []any {
			return []any{f.ID, size(f.Length), when(time.UnixMilli(f.Modified)), c.named(f)}
		}, "no files\n",
	}
}

func (c lsCommand) long() listing[client.Details] {
	return listing[client.Details]{
		c.JSON, "%8v  %10s  %-16s  %-16s  %9v  %-12s  %s\n",
		[]any{"ID", "SIZE", "MODIFIED", "EXPIRES", "DOWNLOADS", "FROM", "NAME"},
		func(d client.Details) []any {
			return []any{
				d.ID, size(d.Length), when(time.UnixMilli(d.Modified)), until(d), allDownloads(d),
				cmp.Or(from(d), "you"), c.named(d.File),
			}
		}, "no files\n",
	}
}

// named returns a file's name, and its link on a separate line if requested.
func (c lsCommand) named(f client.File) any {
	if c.Links {
		return above{f.Name, f.Link}
	}
	return f.Name
}

// above is a column of two lines.
type above struct{ first, second string }

func (a above) String() string {
	return printable(a.first) + "\n" + strings.Repeat(" ", 10) + printable(a.second)
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
			i.out.tell("only the newest %d files are shown; for others, give names or a pattern\n", mostDetailed)
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

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// count formats a number of things for people, such as 1 file or 2 files.
func count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// size formats a number of bytes for people.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1000, "kMGTP"
	for ; v >= 999.5 && len(units) > 1; units = units[1:] {
		v /= 1000
	}
	if v >= 99.95 {
		return fmt.Sprintf("%.0f %cB", v, units[0])
	}
	return fmt.Sprintf("%.1f %cB", v, units[0])
}

// several is the maximum number of ids that an error about an ambiguous name lists.
const several = 10

// one returns the id of the file that the user names by id or name. It looks for up to limit files
// of that name, newest first, and refuses if it finds several.
func (i *identity) one(ctx context.Context, a client.Area, name string, limit int) (int64, error) {
	if id, ok := fileID(name); ok {
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
		return 0, usage("several files are named %s; say which id: %s", printable(name), strings.Join(ids, ", "))
	}
	return found[0].ID, nil
}

func fileID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0
}

type uploadsCommand struct {
	remote
	Abort []string `placeholder:"ID" help:"Abort this upload and remove what has arrived of it; may be repeated."`
	JSON  bool     `name:"json" help:"Print a JSON array; with --abort it includes failures."`
}

func (c uploadsCommand) Run(ctx context.Context, out console, who *identity) error {
	if len(c.Abort) > 0 {
		return c.abort(ctx, out, who)
	}
	return listing[client.Session]{
		c.JSON, "%-36s  %10s  %-16s  %s\n", []any{"ID", "SIZE", "EXPIRES", "NAME"},
		func(s client.Session) []any { return []any{s.ID, size(s.Length), when(s.Expires), sender(s)} },
		"no uploads in progress\n",
	}.print(out, who.Sessions(ctx))
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

func (c uploadsCommand) abort(ctx context.Context, out console, who *identity) error {
	results := []ended{}
	err := each(ctx, out, c.Abort, "upload %s is aborted", func(id string) error {
		err := who.Abort(ctx, id)
		results = append(results, ended{id, explain(err)})
		return err
	})
	return report(out, c.JSON, results, err)
}

func printJSON(out console, v any) error { return writeJSON(out.Out, v, "  ") }

// writeJSON writes v as JSON. Characters that a screen would replace are escaped, which keeps their meaning.
func writeJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range text.String() {
		if controls(r) && r != '\n' {
			fmt.Fprintf(&safe, `\u%04x`, r)
		} else {
			safe.WriteRune(r)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// listing says how to list things: in lines, or as a JSON array.
type listing[T any] struct {
	json    bool
	format  string // of a line, and of the titles
	titles  []any
	columns func(T) []any // each text is one line, or an above
	nothing string        // printed if there is nothing
}

// print prints the things one by one, as they arrive.
func (l listing[T]) print(out console, all iter.Seq2[T, error]) error {
	before := fmt.Sprintf(l.format, l.titles...)
	after := l.nothing
	between := ""
	last := ""
	if l.json {
		before = "[\n  "
		after = "[]\n"
		between = ",\n  "
		last = "\n]\n"
	}
	for v, err := range all {
		if err != nil {
			return err
		}
		columns := l.columns(v)
		for i, column := range columns {
			if text, ok := column.(string); ok {
				columns[i] = printable(text)
			}
		}
		text := fmt.Sprintf(l.format, columns...)
		if l.json {
			var b strings.Builder
			if err := writeJSON(&b, v, ""); err != nil {
				return err
			}
			text = strings.TrimRight(b.String(), "\n")
		}
		if err := out.print("%s%s", before, text); err != nil {
			return err
		}
		before, after = between, last
	}
	return out.print("%s", after)
}
