package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/boot/local"
	"ferry/shared/files"
)

type checkCommand struct {
	store
	Quick  bool `help:"Compare sizes alone: on this machine no bytes are read."`
	Repair bool `help:"Add up quotas again, write missing links, and remove leftovers."`
	Quiet  bool `short:"q" help:"Show no progress."`
}

// Help is shown by ferry check --help.
func (checkCommand) Help() string {
	return `Compares the record of each file with its bytes, its links and its user's quota, here or in a
stack, also while the service runs. In a stack S3's own checksums are compared; no bytes are read.

Each fault is a line: its kind (record, bytes, size, checksum, link, quota or leftover), user, id of
the file, key of the object or item, and details.

--repair never removes a record, or bytes that a record names: get those from a backup. If a fault
is left, the exit code is 65.`
}

func (c checkCommand) Run(ctx context.Context, out console) error {
	return c.open(ctx, api.Settings{}, local.Options{Existing: true}, func(p *api.Ports) error {
		m := newMeter(out, c.Quiet)
		m.name("checking")
		m.start()
		check := files.Check{
			Sweeper: &files.Sweeper{Service: file.Service(p), Log: slog.New(slog.DiscardHandler), Grace: c.grace()},
			Quick:   c.Quick, Repair: c.Repair, Settle: files.Settle, Expect: m.expect, Done: m.add,
			Found: func(f files.Finding) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.clear()
				fmt.Fprintln(out.Out, finding(f))
			},
		}
		r, err := check.Run(ctx)
		m.end()
		if err != nil {
			return err
		}
		fmt.Fprintf(out.Out, "%d files and %d objects compared; faults: %d, mended: %d\n",
			r.Files, r.Objects, r.Found, r.Mended)
		if r.Unsure > 0 {
			fmt.Fprintf(out.Err, "ferry: warning: %d users were too busy to add up what they use; try again\n", r.Unsure)
		}
		if left := r.Found - r.Mended; left > 0 {
			return &coded{exitDamaged, fmt.Errorf("faults left: %d", left)}
		}
		return nil
	}, allPorts()...)
}

// finding formats a fault as a line.
func finding(f files.Finding) string {
	id := "-"
	if f.ID > 0 {
		id = strconv.FormatInt(f.ID, 10)
	}
	line := fmt.Sprintf("%s %s %s %s: %s", f.Kind, cmp.Or(f.User, "-"), id, f.Key, f.What)
	if f.Mended {
		line += " (mended)"
	}
	return printable(line)
}
