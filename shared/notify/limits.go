package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/table"
	"ferry/shared/wire"
)

const day = 24 * time.Hour

// Limits bound how many messages users can make Ferry send, so that nobody can be flooded with
// them. 0 means no limit. Messages are counted in fixed windows, hours and days of UTC: one item
// for each window, and one transaction for each request.
type Limits struct {
	PerHour      int64 // of a user
	PerDay       int64 // of a user
	PerRecipient int64 // to an address or number, a day
}

// Reserve implements files.Outbox. If no window has begun since the time before, it makes no call
// and writes no mark.
func (o Outbox) Reserve(
	ctx context.Context, by files.By, to []string, before time.Time, marks ...func(time.Time) table.Op,
) (now time.Time, err error) {
	now = o.Now()
	var ops []table.Op
	for _, mark := range marks {
		ops = append(ops, mark(now))
	}
	return now, fault.Wrap(
		limit.Reserve(ctx, o.Table, before, now, o.windows(by.User, to), ops...),
		"counting notices",
	)
}

// Release implements files.Outbox. It makes one call to the table, or none if nothing is
// limited. Windows that have ended no longer matter.
func (o Outbox) Release(
	ctx context.Context,
	reserved []time.Time,
	by files.By,
	to []string,
) error {
	err := limit.Release(ctx, o.Table, o.Now(), o.windows(by.User, to), reserved...)
	return fault.Wrap(err, "giving back the count of notices")
}

// windows returns the limited windows in which messages to these addresses and numbers count,
// longest first: if several are full, the longest is the one to wait for.
func (o Outbox) windows(user string, to []string) (all []limit.Window) {
	for _, address := range to {
		all = append(all, limit.Window{
			PK:     "limit#to#" + hashRecipient(address),
			Length: day,
			Add:    1,
			Most:   o.Limits.PerRecipient,
			What:   "notices per recipient and day",
		})
	}
	all = append(all, o.userWindows(user, int64(len(to)))...)
	return slices.DeleteFunc(all, func(w limit.Window) bool {
		return w.Most == 0 || w.Add == 0
	})
}

// userWindows returns the windows in which n messages of a user count, limited or not.
func (o Outbox) userWindows(user string, n int64) []limit.Window {
	pk := "limit#user#" + user
	return []limit.Window{
		{PK: pk, Length: day, Add: n, Most: o.Limits.PerDay, What: "notices per user and day"},
		{
			PK:     pk,
			Length: time.Hour,
			Add:    n,
			Most:   o.Limits.PerHour,
			What:   "notices per user and hour",
		},
	}
}

// Allowances returns what a user has left today and in this hour; nil means no limit. It makes one
// call to the table.
func (o Outbox) Allowances(ctx context.Context, user string) (n wire.Notices, err error) {
	now, windows := o.Now(), o.userWindows(user, 0)
	items, err := o.Table.GetMany(ctx, windows[0].Key(now), windows[1].Key(now))
	if err != nil {
		return n, fmt.Errorf("reading the count of notices: %w", err)
	}
	all := [2]*wire.Allowance{}
	for i, w := range windows {
		left, err := w.Left(items[i])
		if err != nil {
			return n, err
		}
		if w.Most > 0 {
			all[i] = &wire.Allowance{Limit: w.Most, Left: left, Reset: w.End(now)}
		}
	}
	return wire.Notices{Day: all[0], Hour: all[1]}, nil
}

// hashRecipient keeps addresses out of keys. All spellings of an address have the same hash.
func hashRecipient(address string) string { return keys.HashToken(contact.Canonical(address)) }
