package client

import (
	"context"
	"time"
)

// Account is the account of the client's user. Limits that do not exist are nil.
type Account struct {
	Name  string `json:"name"`
	Email string `json:"email,omitempty"`
	Phone string `json:"phone,omitempty"`
	Lang  string `json:"lang,omitempty"` // of links and mails
	Quota *struct {
		Limit int64 `json:"limit"` // bytes in both areas
		Used  int64 `json:"used"`  // bytes of files and of running uploads
	} `json:"quota,omitempty"`
	Notices struct {
		Hour *Allowance `json:"hour,omitempty"`
		Day  *Allowance `json:"day,omitempty"`
	} `json:"notices"`
}

// Allowance says how many notices the user may still cause in a period.
type Allowance struct {
	Limit int64     `json:"limit"`
	Left  int64     `json:"left"`
	Reset time.Time `json:"reset"` // when the count begins again
}

// Account returns the caller's account.
func (c *Client) Account(ctx context.Context) (Account, error) {
	return get[Account](ctx, c, "/me", nil)
}
