// Command cost tells what Ferry costs on AWS: each operation, 1,000 uploads, a
// GB, and a month in which nobody calls.
//
//	go run ./infra/cost                                      prints it, from what was counted before
//	go run ./infra/cost -write                               writes it to this folder's README.md, and a table to that of the module
//	go run ./infra/awslocal -- go run ./infra/cost -count    counts the calls anew, and writes both
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"ferry/infra/template"
)

// The files, from the module's root.
const (
	countsFile = "infra/cost/counts.json"
	pageFile   = "infra/cost/README.md"
	readmeFile = "README.md"
)

// The lines around the table in the module's README.
const (
	tableBegin = "<!-- What follows is written by go run ./infra/cost -write. -->\n"
	tableEnd   = "<!-- This was written by go run ./infra/cost -write. -->\n"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := realMain(ctx, ".", os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, root string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	again := flags.Bool("count", false, "count the calls anew; needs stand-ins for AWS: go run ./infra/awslocal -- go run ./infra/cost -count")
	write := flags.Bool("write", false, "write the pages, after a price was changed")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "cost prints what Ferry costs on AWS: each operation, 1,000 uploads, a GB, and a month in which nobody calls.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	t, err := template.Read(filepath.Join(root, "template.yaml"))
	if err != nil {
		return err
	}
	if *again {
		all, err := countAll(ctx, t, 5)
		if err != nil {
			return err
		}
		if err := writeCounts(filepath.Join(root, countsFile), all); err != nil {
			return err
		}
	}
	pages, err := newPages(root, t)
	if err != nil {
		return err
	}
	if *again || *write {
		return pages.write(root)
	}
	_, err = io.WriteString(out, pages.page+"\n## Beside others\n\n"+pages.table)
	return err
}

// pages are what is written: the page of this folder, and the table of the
// module's README, which is readme with it.
type pages struct{ page, table, readme string }

func newPages(root string, t template.Template) (p pages, err error) {
	counts, err := readCounts(filepath.Join(root, countsFile))
	if err != nil {
		return p, err
	}
	b, err := newBook(t, counts)
	if err != nil {
		return p, err
	}
	var page, table bytes.Buffer
	if err := errors.Join(b.report(&page, t), b.comparison(&table)); err != nil {
		return p, err
	}
	readme, err := os.ReadFile(filepath.Join(root, readmeFile))
	if err != nil {
		return p, fmt.Errorf("reading the README: %w", err)
	}
	before, rest, ok1 := strings.Cut(string(readme), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		return p, errors.New("README.md has no place for the table")
	}
	return pages{page.String(), table.String(), before + tableBegin + "\n" + table.String() + "\n" + tableEnd + after}, nil
}

func (p pages) write(root string) error {
	if err := os.WriteFile(filepath.Join(root, pageFile), []byte(p.page), 0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, readmeFile), []byte(p.readme), 0o644); err != nil {
		return fmt.Errorf("writing the README: %w", err)
	}
	return nil
}
