package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ferry/shared/boot"
	"ferry/shared/boot/local"

	"ferry/shared/notify/inbox"

	"ferry/shared/api"
)

type inboxCommand struct {
	store
	JSON  bool `name:"json" help:"Print a JSON array."`
	Limit int  `default:"20" help:"Most messages to show, newest first (1 to 100)."`
}

func (c inboxCommand) Run(ctx context.Context, out console) (err error) {
	if c.Limit < 1 || c.Limit > inbox.MaxList {
		return &coded{exitUsage, fmt.Errorf("--limit is a number from 1 to %d", inbox.MaxList)}
	}
	p, done, err := c.open(ctx, api.Settings{}, local.Options{Existing: true}, boot.Table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	messages, err := inbox.New(p.Table, p.Now).List(ctx, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		if messages == nil {
			messages = []inbox.Message{}
		}
		enc := json.NewEncoder(out.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(messages)
	}
	if len(messages) == 0 {
		fmt.Fprintln(out.Out, "Nothing was sent yet. An upload with ?m=ADDRESS, or a forgotten password, sends a mail.")
	}
	for i, m := range messages {
		if i > 0 {
			fmt.Fprintln(out.Out)
		}
		fmt.Fprintf(out.Out, "%s  %s to %s\n", m.Sent.Local().Format(time.DateTime), m.Channel, m.To)
		if m.Subject != "" {
			fmt.Fprintf(out.Out, "Subject: %s\n", m.Subject)
		}
		fmt.Fprintf(out.Out, "\n%s\n", m.Text)
	}
	return nil
}
