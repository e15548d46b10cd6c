package main

import (
	"context"
	"errors"
	"fmt"

	"ferry/shared/boot/local"
	"ferry/shared/endpoint"
)

type backupCommand struct {
	Data  string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR" help:"Directory of the data (default ${default})."`
	Quiet bool   `short:"q" help:"Show no progress."`
	To    string `arg:"" type:"path" help:"Directory of the backup: a new one, or that of an earlier backup, to which it adds what is new."`
}

// Help is shown by ferry backup --help.
func (backupCommand) Help() string {
	return `The service may run meanwhile. The backup is of one moment, each file compared with its checksum, and is itself a directory of data:
"ferry serve --data DIR" would serve it. It holds the key of all links: keep it where only you can read it. For a stack on AWS see infra/runbook/README.md.`
}

func (c backupCommand) Run(ctx context.Context, out console) (err error) {
	d, err := local.Open(c.Data, endpoint.Settings{}, local.Options{Existing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return copyData(out, c.Quiet, c.To, func(p local.Progress) (local.Copied, error) { return d.Backup(ctx, c.To, p) })
}

type restoreDataCommand struct {
	Data  string `env:"FERRY_DATA" default:"${usual_data}" type:"path" placeholder:"DIR" help:"Directory to restore to, without data yet (default ${default})."`
	Quiet bool   `short:"q" help:"Show no progress."`
	From  string `arg:"" type:"path" help:"Directory of the backup."`
}

func (c restoreDataCommand) Run(ctx context.Context, out console) error {
	return copyData(out, c.Quiet, c.Data, func(p local.Progress) (local.Copied, error) { return local.Restore(ctx, c.From, c.Data, p) })
}

// copyData shows progress and reports at the end what was done.
func copyData(out console, quiet bool, to string, run func(p local.Progress) (local.Copied, error)) error {
	m := newMeter(out, quiet)
	m.name("copying")
	m.start(nil)
	copied, err := run(local.Progress{Expect: m.expect, Done: m.add})
	m.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Out, "%s: %d files; %d of them new, %s; %d of an earlier backup removed\n", to, copied.Files, copied.New, size(copied.Bytes), copied.Removed)
	for _, name := range copied.Damaged {
		fmt.Fprintf(out.Err, "damaged: %s\n", name)
	}
	if n := len(copied.Damaged); n > 0 {
		return &coded{exitDamaged, fmt.Errorf("%d files have lost bytes or differ from what was uploaded; everything else was copied", n)}
	}
	return nil
}
