package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
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

// limitWindow is a count that a request adds to.
type limitWindow struct {
	pk     string
	length time.Duration
	add    int64
	most   int64
	what   string
}

// Reserve implements files.Outbox. If no window has begun since the time before, it makes no call
// and writes no mark.
func (o Outbox) Reserve(
	ctx context.Context, by files.By, to []string, before time.Time, marks ...func(time.Time) table.Op,
) (now time.Time, err error) {
	now = o.Now()
	begun := slices.DeleteFunc(o.windows(by.User, to), func(w limitWindow) bool { return !w.begin(before).Before(w.begin(now)) })
	if len(begun) == 0 {
		return now, nil
	}
	var ops []table.Op
	for _, mark := range marks {
		ops = append(ops, mark(now))
	}
	for _, w := range begun {
		if w.add > w.most {
			return now, fault.New(fault.Invalid, "notices %s are limited to %d, but this asks for %d at once",
				w.what, w.most, w.add)
		}
		ops = append(ops, w.op(now))
	}
	err = o.Table.Write(ctx, ops...)
	if refused, ok := errors.AsType[*table.ConditionError](err); ok && refused.Op >= len(marks) {
		w := begun[refused.Op-len(marks)]
		return now, fault.Wait(w.begin(now).Add(w.length).Sub(now), "notices %s are limited to %d", w.what, w.most)
	}
	return now, fault.Wrap(err, "counting notices")
}

// Release implements files.Outbox. It makes one call to the table, or none if nothing is
// limited. Windows that have ended no longer matter.
func (o Outbox) Release(ctx context.Context, reserved []time.Time, by files.By, to []string) error {
	counts := map[table.Key]int64{}
	for _, at := range reserved {
		for _, w := range o.windows(by.User, to) {
			if w.begin(at).Add(w.length).After(o.Now()) {
				counts[w.key(at)] += w.add
			}
		}
	}
	var ops []table.Op
	for key, n := range counts {
		ops = append(ops, table.Update(key).Add("n", -n).If(table.Exists()).Relax())
	}
	if len(ops) == 0 {
		return nil
	}
	return fault.Wrap(o.Table.Write(ctx, ops...), "giving back the count of notices")
}

// windows returns the limited windows in which messages to these addresses and numbers count,
// longest first: if several are full, the longest is the one to wait for.
func (o Outbox) windows(user string, to []string) (all []limitWindow) {
	for _, address := range to {
		all = append(all, limitWindow{"limit#to#" + hashRecipient(address), day, 1, o.Limits.PerRecipient, "per recipient and day"})
	}
	all = append(all, o.userWindows(user, int64(len(to)))...)
	return slices.DeleteFunc(all, func(w limitWindow) bool { return w.most == 0 || w.add == 0 })
}

// userWindows returns the windows in which n messages of a user count, limited or not.
func (o Outbox) userWindows(user string, n int64) []limitWindow {
	return []limitWindow{
		{"limit#user#" + user, day, n, o.Limits.PerDay, "per user and day"},
		{"limit#user#" + user, time.Hour, n, o.Limits.PerHour, "per user and hour"},
	}
}

// Allowances returns what a user has left today and in this hour; nil means no limit. It makes one
// call to the table.
func (o Outbox) Allowances(ctx context.Context, user string) (n wire.Notices, err error) {
	now, windows := o.Now(), o.userWindows(user, 0)
	items, err := o.Table.GetMany(ctx, windows[0].key(now), windows[1].key(now))
	if err != nil {
		return n, fmt.Errorf("reading the count of notices: %w", err)
	}
	left := [2]*wire.Allowance{}
	for i, w := range windows {
		var count struct {
			N int64 `json:"n"`
		}
		if err := items[i].Decode(&count); err != nil && !errors.Is(err, table.ErrNotFound) {
			return n, fmt.Errorf("reading the count of notices: %w", err)
		}
		if w.most > 0 {
			left[i] = &wire.Allowance{Limit: w.most, Left: max(0, w.most-count.N), Reset: w.begin(now).Add(w.length)}
		}
	}
	return wire.Notices{Day: left[0], Hour: left[1]}, nil
}

// op adds to the window of now. The item expires with its window.
func (w limitWindow) op(now time.Time) table.Op {
	return table.Update(w.key(now)).Add("n", w.add).If(table.AtMost("n", w.most-w.add)).
		Expire(w.begin(now).Add(w.length)).Relax()
}

func (w limitWindow) key(now time.Time) table.Key {
	return table.Key{PK: w.pk, SK: strconv.Itoa(int(w.length.Hours())) + "h#" + w.begin(now).Format(time.RFC3339)}
}

func (w limitWindow) begin(now time.Time) time.Time { return now.UTC().Truncate(w.length) }

// hashRecipient keeps addresses out of keys. All spellings of an address have the same hash.
func hashRecipient(address string) string { return keys.HashToken(contact.Canonical(address)) }
