package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Show struct {
	remote
	File   string `arg:"" name:"file" help:"Id or name. A number is an id; a name means the newest file with that name."`
	To     string `placeholder:"USER" help:"Show a file that you have sent to this user, by its id there."`
	Backup bool   `xor:"to" help:"Show a file of the backup area."`
	JSON   bool   `name:"json" help:"Print a JSON object."`
}

func (c Show) Run(ctx context.Context, out cli.Console, who *identity) error {
	d, err := c.find(ctx, who)
	if err != nil {
		return cli.Named(c.File, err)
	}
	return printDetails(out, c.JSON, d)
}

func printDetails(out cli.Console, asJSON bool, d client.Details) error {
	if asJSON {
		return cli.PrintJSON(out, d)
	}
	return facts(out, describe(d))
}

func (c Show) find(ctx context.Context, who *identity) (client.Details, error) {
	if c.To != "" {
		id, ok := cli.FileID(c.File)
		if !ok {
			return client.Details{}, cli.Usage("name a file of another user by its id")
		}
		return who.Sent(ctx, c.To, id)
	}
	id, err := who.one(ctx, area(c.Backup), c.File, 1)
	if err != nil {
		return client.Details{}, err
	}
	return who.File(ctx, area(c.Backup), id)
}

// facts prints lines of a label and a text, and skips those with an empty text.
func facts(out cli.Console, lines [][2]string) error {
	for _, line := range lines {
		if line[1] == "" {
			continue
		}
		if err := out.Print("%-10s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}

// from says who sent a file, unless its owner did. A guest may not have given a name.
func from(d client.Details) string {
	if d.Request != "" {
		return cmp.Or(d.By, "a guest")
	}
	return d.Uploader
}

// describe lists what is known about a file.
func describe(d client.Details) [][2]string {
	lines := [][2]string{
		{"id", fmt.Sprint(d.ID)}, {"name", d.Name}, {"size", cli.Size(d.Length)},
		{"stored", cli.When(time.UnixMilli(d.Modified))}, {"until", until(d)}, {"from", from(d)}, {"request", d.Request},
		{"sha-256", d.SHA256}, {"crc64nvme", d.CRC64NVME}, {"link", d.Link}, {"downloads", downloads(d.Downloads)},
	}
	if d.Entries > 0 {
		lines = slices.Insert(lines, 3, [2]string{"entries", fmt.Sprint(d.Entries)})
	}
	for _, n := range d.Notifications {
		text := fmt.Sprintf("%s, %s; downloads: %s", n.To, notified(n), downloads(n.Downloads))
		lines = append(lines, [2]string{"sent to", text})
	}
	return lines
}

// until says when a file leaves its area.
func until(d client.Details) string {
	expires, _ := time.Parse(time.RFC3339, d.Expires) // empty means never
	return cli.Whenever(expires)
}

// notified says what became of a message.
func notified(n client.Notification) string {
	switch {
	case n.State == "failed":
		return "failed: " + cmp.Or(n.LastError, "the reason is not known")
	case !n.Delivered.IsZero():
		return "delivered " + cli.When(n.Delivered)
	case n.State == "sent":
		return "sent " + cli.When(n.Sent)
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
		text += ", the last " + cli.When(d.Last)
	}
	if d.Previews > 0 {
		text += fmt.Sprintf(" (and %s)", cli.Count(d.Previews, "preview"))
	}
	return text
}
