package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ferry/shared/client"
)

type showCommand struct {
	remote
	File   string `arg:"" name:"file" help:"Id or name. A name that several files have is refused."`
	To     string `placeholder:"USER" help:"Show a file that you have sent to this user, by the id that it has there."`
	Backup bool   `xor:"to" help:"Show a file of the backup area."`
	JSON   bool   `name:"json" help:"Print a JSON object."`
}

func (c showCommand) Run(ctx context.Context, out console) error {
	cl, _, err := c.client(out)
	if err != nil {
		return err
	}
	d, err := c.find(ctx, cl)
	if err != nil {
		return &failure{c.File, err}
	}
	if c.JSON {
		return printJSON(out, d)
	}
	_, err = fmt.Fprint(out.Out, describe(d))
	return err
}

func (c showCommand) find(ctx context.Context, cl *client.Client) (client.Details, error) {
	if c.To != "" {
		id, ok := fileID(c.File)
		if !ok {
			return client.Details{}, &coded{exitUsage, errors.New("a file of another user is named by its id")}
		}
		return cl.Sent(ctx, c.To, id)
	}
	id, err := one(ctx, cl, area(c.Backup), c.File)
	if err != nil {
		return client.Details{}, err
	}
	return cl.File(ctx, area(c.Backup), id)
}

// describe tells of a file for people. Nothing in it speaks to a terminal.
func describe(d client.Details) string {
	var b strings.Builder
	line := func(label, format string, values ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", label, fmt.Sprintf(format, values...))
	}
	line("id", "%d", d.ID)
	line("name", "%s", printable(d.Name))
	line("size", "%s", size(d.Length))
	line("stored", "%s", when(time.UnixMilli(d.Modified)))
	if expires, err := time.Parse(time.RFC3339, d.Expires); err == nil {
		line("until", "%s", when(expires))
	}
	if d.Uploader != "" {
		line("from", "%s", printable(d.Uploader))
	}
	if d.SHA256 != "" {
		line("sha-256", "%s", printable(d.SHA256))
	}
	line("crc64nvme", "%s", printable(d.CRC64NVME))
	line("link", "%s", printable(d.Link))
	line("downloads", "%s", downloads(d.Downloads))
	for _, n := range d.Notifications {
		line("sent to", "%s, %s; downloads: %s", printable(n.To), notified(n), downloads(n.Downloads))
	}
	return b.String()
}

// notified says how far a message is.
func notified(n client.Notification) string {
	switch {
	case n.State == "failed":
		return "failed: " + cmp.Or(printable(n.LastError), "the reason is not known")
	case !n.Delivered.IsZero():
		return "delivered " + when(n.Delivered)
	case n.State == "sent":
		return "sent " + when(n.Sent)
	case n.LastError != "":
		return fmt.Sprintf("%s after %d tries: %s", printable(n.State), n.Tries, printable(n.LastError))
	}
	return cmp.Or(printable(n.State), "what became of it is not known any more")
}

func downloads(d client.Downloads) string {
	text := fmt.Sprint(d.Count)
	if d.Count > 0 {
		text += ", the last " + when(d.Last)
	}
	if d.Previews > 0 {
		text += fmt.Sprintf(" (and %d previews)", d.Previews)
	}
	return text
}
