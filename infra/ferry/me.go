package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"ferry/shared/client"
)

type meCommand struct {
	remote
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (c meCommand) Run(ctx context.Context, out console, who *identity) error {
	a, err := who.Account(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out, a)
	}
	quota := "no limit"
	if a.Quota != nil {
		quota = fmt.Sprintf("%s of %s used", size(a.Quota.Used), size(a.Quota.Limit))
	}
	var b strings.Builder
	for _, line := range [][2]string{
		{"name", a.Name}, {"e-mail", a.Email}, {"phone", a.Phone}, {"language", a.Lang}, {"quota", quota},
		{"notices", allowance(a.Notices.Hour, "this hour") + ", " + allowance(a.Notices.Day, "today")},
	} {
		fmt.Fprintf(&b, "%-10s %s\n", line[0], printable(cmp.Or(line[1], "none")))
	}
	_, err = fmt.Fprint(out.Out, b.String())
	return err
}

// allowance says how many notices are left in a period.
func allowance(a *client.Allowance, period string) string {
	if a == nil {
		return "no limit " + period
	}
	return fmt.Sprintf("%d of %d left %s (until %s)", a.Left, a.Limit, period, when(a.Reset))
}
