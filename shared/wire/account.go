package wire

import "time"

// Account is the account of the caller. Limits that do not exist are nil.
type Account struct {
	Name    string  `json:"name"`
	Email   string  `json:"email,omitempty"`
	Phone   string  `json:"phone,omitempty"`
	Lang    string  `json:"lang,omitempty"` // of links and mails; empty if the account has none
	Quota   *Quota  `json:"quota,omitempty"`
	Notices Notices `json:"notices"`
}

// Quota is how many bytes both areas may hold together, and how many of them files and running
// uploads take.
type Quota struct {
	Limit int64 `json:"limit"`
	Used  int64 `json:"used"`
}

// Notices says how many notices the caller may still cause.
type Notices struct {
	Hour *Allowance `json:"hour,omitempty"`
	Day  *Allowance `json:"day,omitempty"`
}

// Allowance is what is left of a limit in a period.
type Allowance struct {
	Limit int64     `json:"limit"`
	Left  int64     `json:"left"`
	Reset time.Time `json:"reset"` // when the count starts again
}
