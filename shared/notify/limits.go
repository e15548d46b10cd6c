// Package limits bounds how many messages users can make Ferry send, so that it
// is no means of flooding anybody: per user and hour, per user and day, and per
// recipient and day, whoever sends.
//
// They are counted in fixed windows, hours and days of UTC: one item for each,
// and one transaction for all of a request's. What is refused counts nothing.

package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ferry/shared/table"

	"ferry/shared/envelope"
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

// Notices are the most messages of each kind of window. 0 is no bound.
type Limits struct {
	PerHour      int64 // of a user
	PerDay       int64 // of a user
	PerRecipient int64 // to an address or number, a day
}

// Counter counts. It is safe for concurrent use, and any number may work on
// one table.
type LimitCounter struct {
	Table table.Table
	Now   func() time.Time
	Most  Limits
}

// at returns a counter whose time stands still.
func (c LimitCounter) at(now time.Time) LimitCounter {
	c.Now = func() time.Time { return now }
	return c
}

// window is a count that a request adds to.
type limitWindow struct {
	pk     string
	length time.Duration
	add    int64
	most   int64
	what   string
}

// Take counts a message of the user to each of the given addresses and numbers,
// which differ. One call to the table; none if nothing is bounded. A TooMany
// fault tells when there is room again, an Invalid one that there never will be;
// then none of them was counted.
func (c LimitCounter) Take(ctx context.Context, user string, to ...string) error {
	return c.count(ctx, c.windows(user, to))
}

// TakeAgain counts what Take has counted at that time, in the windows that have
// begun since, for messages that are sent only now. mark is written in the same
// call; its refused condition is a table.ErrCondition, and nothing was counted.
// No call is made, and mark not written, if there is no such window.
func (c LimitCounter) TakeAgain(ctx context.Context, taken time.Time, mark table.Op, user string, to ...string) error {
	now := c.Now()
	var begun []limitWindow
	for _, w := range c.windows(user, to) {
		if w.begin(taken).Before(w.begin(now)) {
			begun = append(begun, w)
		}
	}
	return c.count(ctx, begun, mark)
}

// count adds to the windows that are bounded, and writes marks if there are any.
func (c LimitCounter) count(ctx context.Context, all []limitWindow, marks ...table.Op) error {
	now := c.Now()
	var open []limitWindow
	ops := marks
	for _, w := range all {
		if w.most == 0 {
			continue
		}
		if w.add > w.most {
			return envelope.NewFault(envelope.Invalid, "at most %d notifications %s, and this asks for %d at once", w.most, w.what, w.add)
		}
		open, ops = append(open, w), append(ops, w.op(now))
	}
	if len(open) == 0 {
		return nil
	}
	err := c.Table.Write(ctx, ops...)
	var refused *table.ConditionError
	if errors.As(err, &refused) && refused.Op >= len(marks) {
		return tooManyNotices(open[refused.Op-len(marks)], now)
	}
	if err != nil {
		return fmt.Errorf("counting notices: %w", err)
	}
	return nil
}

// Return gives back what Take has counted at these times, for messages that are
// not sent after all. One call to the table; none if nothing is bounded. What
// lies in a window that is over matters to nobody any more.
func (c LimitCounter) Return(ctx context.Context, taken []time.Time, user string, to ...string) error {
	counts := map[table.Key]int64{}
	for _, at := range taken {
		for _, w := range c.windows(user, to) {
			if w.most > 0 && w.begin(at).Add(w.length).After(c.Now()) {
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
	if err := c.Table.Write(ctx, ops...); err != nil {
		return fmt.Errorf("giving back the count of notices: %w", err)
	}
	return nil
}

// windows has the longest first: if several are full, that is the one to wait for.
func (c LimitCounter) windows(user string, to []string) []limitWindow {
	if len(to) == 0 {
		return nil
	}
	var all []limitWindow
	for _, address := range to {
		all = append(all, limitWindow{"limit#to#" + hashRecipient(address), day, 1, c.Most.PerRecipient, "to a recipient a day"})
	}
	n := int64(len(to))
	return append(all,
		limitWindow{"limit#user#" + user, day, n, c.Most.PerDay, "of a user a day"},
		limitWindow{"limit#user#" + user, hour, n, c.Most.PerHour, "of a user an hour"})
}

// op adds to the window of now. The item is needed no longer than it lasts.
func (w limitWindow) op(now time.Time) table.Op {
	return table.Update(w.key(now)).Add("n", w.add).If(table.AtMost("n", w.most-w.add)).Expire(w.begin(now).Add(w.length)).Relax()
}

func (w limitWindow) key(now time.Time) table.Key {
	return table.Key{PK: w.pk, SK: strconv.Itoa(int(w.length.Hours())) + "h#" + w.begin(now).Format(time.RFC3339)}
}

func (w limitWindow) begin(now time.Time) time.Time { return now.UTC().Truncate(w.length) }

func tooManyNotices(w limitWindow, now time.Time) error {
	return envelope.WaitFault(w.begin(now).Add(w.length).Sub(now), "at most %d notifications %s", w.most, w.what)
}

// hash keeps the addresses out of keys; it is the same however one is written.
func hashRecipient(address string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
