package client

import (
	"cmp"
	"context"
	"fmt"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Me struct {
	remote
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (c Me) Run(ctx context.Context, out cli.Console, who *identity) error {
	a, err := who.Account(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(out, a)
	}
	quota := "no limit"
	if a.Quota != nil {
		quota = fmt.Sprintf("%s of %s used", cli.Size(a.Quota.Used), cli.Size(a.Quota.Limit))
	}
	return facts(out, [][2]string{
		{"name", a.Name}, {"e-mail", cmp.Or(
			a.Email,
			"none",
		)}, {"phone", cmp.Or(a.Phone, "none")},
		{"language", cmp.Or(a.Lang, "none")}, {"quota", quota},
		{"notices", allowance(a.Notices.Hour, "this hour") + ", " + allowance(
			a.Notices.Day,
			"today",
		)},
	})
}

// allowance says how many notices are left in a period.
func allowance(a *client.Allowance, period string) string {
	if a == nil {
		return "no limit " + period
	}
	return fmt.Sprintf("%d of %d left %s (until %s)",
		a.Left, a.Limit, period, cli.When(a.Reset))
}
