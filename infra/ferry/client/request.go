package client

import (
	"context"
	"fmt"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Request struct {
	Add requestAddCommand `cmd:"" help:"Make a request, and print its link."`
	Ls  requestLsCommand  `cmd:"" help:"List your open requests, with their links and what has arrived."`
	Set requestSetCommand `cmd:"" help:"Change what a request says, when it ends, its limits or its password."`
	Rm  requestRmCommand  `cmd:"" help:"End requests at once, for good. What has arrived stays."`
}

// requesting has the flags of commands that describe a request.
type requesting struct {
	remote
	Title   *string   `placeholder:"TEXT" help:"What you ask for, shown to people who have the link."`
	Message *string   `placeholder:"TEXT" help:"What else they should know."`
	Expires *string   `placeholder:"WHEN" help:"When it ends: after 12h, 7d or 2w, or a date; none means never."`
	Bytes   *byteSize `placeholder:"SIZE" help:"How much it takes in all, such as 2GB; 0 means no limit."`
	Files   *int64    `placeholder:"N" help:"How many files it takes in all; 0 means 10,000."`
	Notify  *bool     `negatable:"" help:"Get a mail when files arrive."`
	protecting
	JSON bool `name:"json" help:"Print a JSON object."`
}

// wanted returns what the flags say.
func (c requesting) wanted(
	ctx context.Context,
	out cli.Console,
	noPassword bool,
) (client.NewRequest, error) {
	password, err := c.changed(ctx, out, noPassword)
	return client.NewRequest{
		Title:    c.Title,
		Message:  c.Message,
		Expires:  orNone(c.Expires),
		Bytes:    (*int64)(c.Bytes),
		Files:    c.Files,
		Notify:   c.Notify,
		Password: password,
	}, err
}

type requestAddCommand struct {
	requesting
	QR bool `name:"qr" help:"Show the link as a QR code too, on standard error."`
}

func (c requestAddCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	q, err := c.wanted(ctx, out, false)
	if err != nil {
		return err
	}
	made, err := who.AddRequest(ctx, q)
	if err == nil {
		err = sharing{QR: c.QR}.printLink(out, c.JSON, made.LinkURL, "")
	}
	return cli.Report(out, c.JSON && err == nil, made, err)
}

type requestLsCommand struct {
	remote
	JSON bool `name:"json" help:"Print a JSON array."`
}

func (c requestLsCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	all, err := who.Requests(ctx)
	if err != nil {
		return err
	}
	return requests(c.JSON).Print(out, cli.Values(all))
}

// requests lists requests.
func requests(asJSON bool) cli.Listing[client.Request] {
	return cli.Listing[client.Request]{
		JSON:   asJSON,
		Format: "%-16v  %-16s  %-12v  %-18v  %-8s  %s\n",
		Titles: []any{"ID", "EXPIRES", "FILES", "SIZE", "PASSWORD", "TITLE"},
		Columns: func(q client.Request) []any {
			files := fmt.Sprint(q.Arrived.Files)
			bytes := cli.Size(q.Arrived.Bytes)
			password := "no"
			if q.Files > 0 {
				files += fmt.Sprintf(" of %d", q.Files)
			}
			if q.Bytes > 0 {
				bytes += " of " + cli.Size(q.Bytes)
			}
			if q.Protected {
				password = "yes"
			}
			return []any{q.ID, cli.Whenever(q.Expires), files, bytes, password, cli.Above{
				First:  q.Title,
				Second: q.LinkURL,
			}}
		},
		Nothing: "no open requests\n",
	}
}

type requestSetCommand struct {
	ID string `arg:"" name:"id" help:"As ferry request ls shows it."`
	requesting
	NoPassword bool `help:"Remove the password."`
}

func (c requestSetCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	q, err := c.wanted(ctx, out, c.NoPassword)
	if err != nil {
		return err
	}
	if q == (client.NewRequest{}) {
		return cli.Usage("say what to change, such as --expires 7d")
	}
	now, err := who.ChangeRequest(ctx, c.ID, q)
	if err != nil {
		return cli.Named(c.ID, err)
	}
	if c.JSON {
		return cli.PrintJSON(out, now)
	}
	return requests(false).Print(out, cli.Values([]client.Request{now}))
}

type requestRmCommand struct {
	remote
	IDs []string `arg:"" name:"id" help:"As ferry request ls shows it."`
}

func (c requestRmCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	return cli.Each(ctx, out, c.IDs, "request %s has ended", func(id string) error {
		return who.EndRequest(ctx, id)
	})
}
