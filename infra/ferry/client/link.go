package client

import (
	"cmp"
	"context"
	"fmt"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Link struct {
	Ls    linkLsCommand    `cmd:"" help:"List the links of a file: their state, recipient and downloads left."`
	Set   linkSetCommand   `cmd:"" help:"Change when a link ends, how many downloads it allows, or its password."`
	Rm    linkRmCommand    `cmd:"" help:"End links at once, for good."`
	Renew linkRenewCommand `cmd:"" help:"End a file's own link and make a new one."`
}

// oneFile names a file of the user area.
type oneFile struct {
	remote
	File string `arg:"" name:"file" help:"Id or name. A number is an id; a name shared by several files is refused."`
}

func (f oneFile) find(ctx context.Context, who *identity) (int64, error) {
	id, err := who.one(ctx, client.UserArea, f.File, several)
	if err != nil {
		return 0, cli.Named(f.File, err)
	}
	return id, nil
}

type linkLsCommand struct {
	oneFile
	JSON bool `name:"json" help:"Print a JSON array."`
}

func (c linkLsCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	id, err := c.find(ctx, who)
	if err != nil {
		return err
	}
	d, err := who.File(ctx, client.UserArea, id)
	if err != nil {
		return err
	}
	return links(c.JSON).Print(out, cli.Values(d.Links))
}

// links lists links.
func links(asJSON bool) cli.Listing[client.Link] {
	return cli.Listing[client.Link]{
		JSON:   asJSON,
		Format: "%-30v  %-8s  %-16s  %-10s  %4v  %-8s  %s\n",
		Titles: []any{"ID", "STATE", "EXPIRES", "LEFT", "USED", "PASSWORD", "FOR"},
		Columns: func(l client.Link) []any {
			left, password := "no limit", "no"
			if l.Left != nil {
				left = fmt.Sprintf("%d of %d", *l.Left, l.Downloads)
			}
			if l.Protected {
				password = "yes"
			}
			used := fmt.Sprint(l.Used.Count)
			if l.Used.About {
				used = "~" + used
			}
			return []any{
				l.ID, l.State, cli.Whenever(l.Expires), left, used, password,
				cmp.Or(l.To, l.LinkURL),
			}
		},
		Nothing: "no links\n",
	}
}

type linkSetCommand struct {
	oneFile
	Link string `arg:"" name:"link" help:"Id as ferry link ls shows it, such as own."`
	changing
	JSON bool `name:"json" help:"Print the link as a JSON array."`
}

func (c linkSetCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	change, err := c.change(ctx, out)
	if err != nil {
		return err
	}
	if change == (client.ChangeLink{}) {
		return cli.Usage("say what to change, such as --downloads 5")
	}
	id, err := c.find(ctx, who)
	if err != nil {
		return err
	}
	l, err := who.ChangeLink(ctx, id, c.Link, change)
	if err != nil {
		return cli.Named(c.Link, err)
	}
	return links(c.JSON).Print(out, cli.Values([]client.Link{l}))
}

type linkRmCommand struct {
	oneFile
	Links []string `arg:"" name:"link" help:"Id as ferry link ls shows it, such as own."`
}

func (c linkRmCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	id, err := c.find(ctx, who)
	if err != nil {
		return err
	}
	return cli.Each(ctx, out, c.Links, "link %s has ended", func(link string) error {
		_, err := who.EndLink(ctx, id, link)
		return err
	})
}

type linkRenewCommand struct {
	oneFile
	JSON bool `name:"json" help:"Print the file as a JSON object."`
}

func (c linkRenewCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	id, err := c.find(ctx, who)
	if err != nil {
		return err
	}
	d, err := who.RenewLink(ctx, id)
	if err != nil || c.JSON {
		return cli.Report(out, err == nil, d, err)
	}
	return out.Print("%s\n", d.Link)
}
