package client

import (
	"context"

	"ferry/shared/wire"
)

// Account is the account of the client's user. Limits that do not exist are nil.
type Account = wire.Account

// Allowance says how many notices the user may still cause in a period.
type Allowance = wire.Allowance

// Account returns the caller's account.
func (c *Client) Account(ctx context.Context) (Account, error) {
	return get[Account](ctx, c, "/me", nil)
}
