package main

import (
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
	"unicode"

	"golang.org/x/sync/errgroup"

	"ferry/shared/client"
)

type lsCommand struct {
	remote
	Files  []string `arg:"" name:"file" optional:"" help:"Ids, names or quoted patterns, such as '*.pdf' (default all files)."`
	Long   bool     `short:"l" help:"Show when each file expires, its downloads and its sender too, of the newest 200 files."`
	Backup bool     `help:"List the backup area, where deleted files stay for a while."`
	Links  bool     `help:"Print each file's link too."`
	JSON   bool     `name:"json" help:"Print a JSON array."`
}

func (lsCommand) Help() string {
	return patterns + `
Downloads are those by all links of a file that concern you. -l asks the service about each file, and so takes longer.
Examples:
    ferry ls -l
    ferry ls '*.pdf' 'report-202[56]-*'`
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
	known, err := detailed(ctx, out, who.Client, area(c.Backup), all)
	if err == nil {
		err = c.long().print(out, values(known))
	}
	return cmp.Or(err, failed.first)
}

// chosen returns the files that the arguments mean, in the order of the list.
func (c lsCommand) chosen(every []client.File, failed *failures) (chosen []client.File) {
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
	for _, f := range every {
		if wanted[f.ID] {
			chosen = append(chosen, f)
		}
	}
	return chosen
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
			until := "never"
			if expires, err := time.Parse(time.RFC3339, d.Expires); err == nil {
				until = when(expires)
			}
			return []any{
				d.ID, size(d.Length), when(time.UnixMilli(d.Modified)), until, allDownloads(d),
				printable(cmp.Or(d.Uploader, "you")), c.named(d.File),
			}
		}, "no files\n",
	}
}

// named returns a file's name, and its link on a line of its own if that is wanted.
func (c lsCommand) named(f client.File) string {
	name := printable(f.Name)
	if c.Links {
		name += "\n" + strings.Repeat(" ", 10) + f.Link
	}
	return name
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
	// mostDetailed is how many files ls -l asks about, and askedAtOnce how many at a time.
	mostDetailed = 200
	askedAtOnce  = 8
)

// detailed returns everything about the first of some files, without those that are gone by then.
func detailed(
	ctx context.Context, out console, cl *client.Client, a client.Area, files iter.Seq2[client.File, error],
) ([]client.Details, error) {
	all := make([]client.Details, mostDetailed)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce)
	n := 0
	for f, err := range files {
		if n == mostDetailed {
			fmt.Fprintf(out.Err, "these are the newest %d files; name others, or a pattern\n", mostDetailed)
			break
		}
		known := &all[n]
		n++
		g.Go(func() error {
			if err == nil {
				*known, err = cl.File(inner, a, f.ID)
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

// printable replaces what could control a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

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

type rmCommand struct {
	remote
	Files  []string `arg:"" name:"file" help:"Id, name or quoted pattern, such as '*.pdf'. A number is an id; a name shared by several files is refused."`
	Backup bool     `xor:"for-good" help:"Remove files from the backup area, for good."`
	Now    bool     `xor:"for-good" help:"Remove files for good at once, from the backup area too. Nothing is asked."`
	JSON   bool     `name:"json" help:"Print a JSON array of the files and of failures."`
}

func (rmCommand) Help() string {
	return `A deleted file counts in the quota until it is gone from the backup area too.
` + patterns + `
Examples:
    ferry rm 17 report.pdf
    ferry rm '*.tmp'`
}

func (c rmCommand) Run(ctx context.Context, out console, who *identity) error {
	purge := func(ctx context.Context, id int64) (client.File, error) {
		if c.Now {
			if _, err := who.Delete(ctx, id); err != nil && !errors.Is(err, client.ErrNotFound) {
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
		return moveEach(ctx, out, who.Client, c.Files, c.JSON, area(c.Backup), "removed for good", purge)
	}
	return moveEach(ctx, out, who.Client, c.Files, c.JSON, client.UserArea, "in the backup area", who.Delete)
}

type restoreCommand struct {
	remote
	Files []string `arg:"" name:"file" help:"Id, name or quoted pattern in the backup area. A number is an id."`
	JSON  bool     `name:"json" help:"Print a JSON array of the files, and of failures."`
}

func (c restoreCommand) Run(ctx context.Context, out console, who *identity) error {
	return moveEach(ctx, out, who.Client, c.Files, c.JSON, client.BackupArea, "restored", who.Restore)
}

// moved is the report on one file.
type moved struct {
	What string `json:"what"`
	*client.File
	Error string `json:"error,omitempty"`
}

// moveEach moves the named files out of an area, as many as it can.
func moveEach(ctx context.Context, out console, cl *client.Client, names []string, asJSON bool, from client.Area,
	done string, move func(context.Context, int64) (client.File, error),
) error {
	results := []moved{}
	names, err := expand(ctx, cl, from, names, false)
	if err != nil {
		return err
	}
	err = each(ctx, out, names, func(name string) error {
		r := moved{What: name}
		id, err := one(ctx, cl, from, name, several)
		if err == nil {
			var f client.File
			if f, err = move(ctx, id); err == nil {
				r.File = &f
				fmt.Fprintf(out.Err, "%s (id %d) is %s\n", printable(cmp.Or(f.Name, name)), f.ID, done)
			}
		}
		r.Error = explain(err)
		results = append(results, r)
		return err
	})
	return report(out, asJSON, results, err)
}

// several is the most ids that an error about an ambiguous name lists.
const several = 10

// one returns the id of the file that a person names by its id or name. It looks for
// up to limit files of that name, newest first, and refuses if it finds several.
func one(ctx context.Context, cl *client.Client, a client.Area, name string, limit int) (int64, error) {
	if id, ok := fileID(name); ok {
		return id, nil
	}
	found, err := cl.Named(ctx, a, name, limit)
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

type showCommand struct {
	remote
	File   string `arg:"" name:"file" help:"Id or name. A number is an id; a name means the newest file with that name."`
	To     string `placeholder:"USER" help:"Show a file that you have sent to this user, by its id there."`
	Backup bool   `xor:"to" help:"Show a file of the backup area."`
	JSON   bool   `name:"json" help:"Print a JSON object."`
}

func (c showCommand) Run(ctx context.Context, out console, who *identity) error {
	d, err := c.find(ctx, who.Client)
	if err != nil {
		return &failure{c.File, err}
	}
	if c.JSON {
		return printJSON(out, d)
	}
	return facts(out, describe(d))
}

func (c showCommand) find(ctx context.Context, cl *client.Client) (client.Details, error) {
	if c.To != "" {
		id, ok := fileID(c.File)
		if !ok {
			return client.Details{}, usage("name a file of another user by its id")
		}
		return cl.Sent(ctx, c.To, id)
	}
	id, err := one(ctx, cl, area(c.Backup), c.File, 1)
	if err != nil {
		return client.Details{}, err
	}
	return cl.File(ctx, area(c.Backup), id)
}

// facts prints lines of a label and a text, but none for an empty text. Nothing in them
// can control the terminal.
func facts(out console, lines [][2]string) error {
	var b strings.Builder
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(&b, "%-10s %s\n", line[0], printable(line[1]))
		}
	}
	_, err := io.WriteString(out.Out, b.String())
	return err
}

// describe says what is known of a file.
func describe(d client.Details) [][2]string {
	until := ""
	if expires, err := time.Parse(time.RFC3339, d.Expires); err == nil {
		until = when(expires)
	}
	lines := [][2]string{
		{"id", fmt.Sprint(d.ID)}, {"name", d.Name}, {"size", size(d.Length)}, {"stored", when(time.UnixMilli(d.Modified))},
		{"until", until}, {"from", d.Uploader}, {"sha-256", d.SHA256}, {"crc64nvme", d.CRC64NVME}, {"link", d.Link},
		{"downloads", downloads(d.Downloads)},
	}
	if d.Entries > 0 {
		lines = slices.Insert(lines, 3, [2]string{"entries", fmt.Sprint(d.Entries)})
	}
	for _, n := range d.Notifications {
		lines = append(lines, [2]string{"sent to", fmt.Sprintf("%s, %s; downloads: %s", n.To, notified(n), downloads(n.Downloads))})
	}
	return lines
}

// notified says what became of a message.
func notified(n client.Notification) string {
	switch {
	case n.State == "failed":
		return "failed: " + cmp.Or(n.LastError, "the reason is not known")
	case !n.Delivered.IsZero():
		return "delivered " + when(n.Delivered)
	case n.State == "sent":
		return "sent " + when(n.Sent)
	case n.LastError != "" && n.Tries == 0: // a limit of the provider holds it up
		return n.State + ": " + n.LastError
	case n.LastError != "":
		return fmt.Sprintf("%s (tries: %d): %s", n.State, n.Tries, n.LastError)
	}
	return cmp.Or(n.State, "its state is no longer known")
}

func downloads(d client.Downloads) string {
	text := fmt.Sprint(d.Count)
	if d.About {
		text = "about " + text
	}
	if d.Count > 0 {
		text += ", the last " + when(d.Last)
	}
	if d.Previews > 0 {
		text += fmt.Sprintf(" (and %s)", count(d.Previews, "preview"))
	}
	return text
}

type meCommand struct {
	remote
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (meCommand) Help() string {
	return "The bytes in use are shown only with a quota: without one, nothing counts them."
}

func (c meCommand) Run(ctx context.Context, out console, who *identity) error {
	a, err := who.Account(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out, a)
	}
	quota := "no limit"
	if a.Quota != nil {
		quota = fmt.Sprintf("%s of %s used", size(a.Quota.Used), size(a.Quota.Limit))
	}
	return facts(out, [][2]string{
		{"name", a.Name}, {"e-mail", cmp.Or(a.Email, "none")}, {"phone", cmp.Or(a.Phone, "none")},
		{"language", cmp.Or(a.Lang, "none")}, {"quota", quota},
		{"notices", allowance(a.Notices.Hour, "this hour") + ", " + allowance(a.Notices.Day, "today")},
	})
}

// allowance says how many notices are left in a period.
func allowance(a *client.Allowance, period string) string {
	if a == nil {
		return "no limit " + period
	}
	return fmt.Sprintf("%d of %d left %s (until %s)", a.Left, a.Limit, period, when(a.Reset))
}

type uploadsCommand struct {
	remote
	Abort []string `placeholder:"ID" help:"Abort this upload and remove what has arrived of it; may be repeated."`
	JSON  bool     `name:"json" help:"Print a JSON array; with --abort it includes failures."`
}

func (uploadsCommand) Help() string {
	return "Lists unfinished uploads in parts, your own and those of others to you. " +
		"To resume one, run the same ferry up again."
}

func (c uploadsCommand) Run(ctx context.Context, out console, who *identity) error {
	if len(c.Abort) > 0 {
		return c.abort(ctx, out, who.Client)
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
		return printable(s.Name)
	}
	return printable(s.Name + " (from " + s.From + ")")
}

// ended is the report on an upload to abort.
type ended struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

func (c uploadsCommand) abort(ctx context.Context, out console, cl *client.Client) error {
	results := []ended{}
	err := each(ctx, out, c.Abort, func(id string) error {
		err := cl.Abort(ctx, id)
		if err == nil {
			fmt.Fprintf(out.Err, "upload %s is aborted\n", id)
		}
		results = append(results, ended{id, explain(err)})
		return err
	})
	return report(out, c.JSON, results, err)
}

func printJSON(out console, v any) error { return writeJSON(out.Out, v, "  ") }

func writeJSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

// listing says how to list things: in lines, or as a JSON array.
type listing[T any] struct {
	json    bool
	format  string // of a line, and of the titles
	titles  []any
	columns func(T) []any
	nothing string // printed if there is nothing
}

// print prints the things one by one, as they come.
func (l listing[T]) print(out console, all iter.Seq2[T, error]) error {
	before, after, between, last := fmt.Sprintf(l.format, l.titles...), l.nothing, "", ""
	if l.json {
		before, after, between, last = "[\n  ", "[]\n", ",\n  ", "\n]\n"
	}
	for v, err := range all {
		if err != nil {
			return err
		}
		text := fmt.Sprintf(l.format, l.columns(v)...)
		if l.json {
			var b strings.Builder
			if err := writeJSON(&b, v, ""); err != nil {
				return err
			}
			text = strings.TrimRight(b.String(), "\n")
		}
		if _, err := io.WriteString(out.Out, before+text); err != nil {
			return err
		}
		before, after = between, last
	}
	_, err := io.WriteString(out.Out, after)
	return err
}
