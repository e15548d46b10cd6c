package client

import (
	"context"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Token struct {
	Add  tokenAddCommand  `cmd:"" help:"Make a token for a program, and print it."`
	List tokenListCommand `cmd:"" help:"List your tokens, and the devices that are logged in."`
	Rm   tokenRmCommand   `cmd:"" help:"End tokens, or the logins of devices, at once."`
}

type tokenAddCommand struct {
	remote
	Name    string `arg:"" help:"What the token is for, such as the program's name."`
	Scope   string `default:"upload" enum:"upload,download,all"`
	Expires string `placeholder:"WHEN"`
	JSON    bool   `name:"json" help:"Print a JSON object."`
}

func (c tokenAddCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	t, err := who.AddToken(ctx, client.NewToken{
		Name:    c.Name,
		Scope:   c.Scope,
		Expires: c.Expires,
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(out, t)
	}
	out.Tell("This token is shown only now; ferry token list shows how long it lasts:\n")
	return out.Print("%s\n", t.Token)
}

type tokenListCommand struct {
	remote
	JSON bool `name:"json" help:"Print a JSON array."`
}

func (c tokenListCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	all, err := who.Tokens(ctx)
	if err != nil {
		return err
	}
	return cli.Listing[client.Token]{
		JSON:   c.JSON,
		Format: "%-16v  %-8s  %-16s  %-16s  %-16s  %s\n",
		Titles: []any{"ID", "SCOPE", "MADE", "LAST USED", "ENDS", "NAME"},
		Columns: func(t client.Token) []any {
			name := t.Name
			if t.This {
				name += " (this login)"
			}
			return []any{
				t.ID, t.Scope, cli.When(t.Created), cli.Whenever(t.Used), cli.When(t.Ends), name,
			}
		},
		Nothing: "no tokens\n",
	}.Print(out, cli.Values(all))
}

type tokenRmCommand struct {
	remote
	IDs []string `arg:"" name:"id" optional:"" help:"As ferry token list shows it."`
	All bool     `help:"End all tokens and all logins, this one too."`
}

func (c tokenRmCommand) Run(ctx context.Context, out cli.Console, who *identity) error {
	switch {
	case c.All == (len(c.IDs) > 0):
		return cli.Usage("say which tokens by their ids, or --all")
	case c.All:
		if err := who.EndTokens(ctx); err != nil {
			return err
		}
		out.Tell("all tokens and logins have ended; run ferry login to continue\n")
		return nil
	}
	return cli.Each(ctx, out, c.IDs, "token %s has ended", func(id string) error {
		return who.EndToken(ctx, id)
	})
}
